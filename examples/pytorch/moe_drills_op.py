"""moe_drills::moe_layer, a PyTorch operator over libmoe_drills (library/moe_drills.h).

    import moe_drills_op
    out = moe_drills_op.moe_layer(x, logits, w13, w2, top_k=8, renormalize=True)

The library is looked for in MOE_DRILLS_LIBRARY, else in this clone's build/cuda/library. Inference only: the
operator has no backward.
"""

import ctypes
import functools
import os
import pathlib

import torch
from torch import Tensor

ABI_VERSION = 1  # MOE_DRILLS_ABI_VERSION
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_HOW_TO_BUILD = f"""Build it for the GPU of this machine (90a for an H100 or H200):
  cd {_ROOT}
  cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a
  cmake --build build/cuda --target moe_drills
or name another one: MOE_DRILLS_LIBRARY=/path/to/libmoe_drills.so"""


class LibraryMissing(RuntimeError):
    """libmoe_drills can't be used; the message says why and how to build it."""


@functools.lru_cache(maxsize=None)
def load() -> ctypes.CDLL:
    """The library, loaded at the first call of this or of the operator; LibraryMissing where that fails."""
    path = pathlib.Path(
        os.environ.get("MOE_DRILLS_LIBRARY") or _ROOT / "build/cuda/library/libmoe_drills.so"
    )
    if not path.is_file():
        raise LibraryMissing(f"There is no libmoe_drills at {path}.\n{_HOW_TO_BUILD}")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise LibraryMissing(f"{path} cannot be loaded: {error}.\n{_HOW_TO_BUILD}") from None

    library.moe_drills_abi_version.restype = ctypes.c_int
    library.moe_drills_abi_version.argtypes = []
    for name in ("moe_drills_backend", "moe_drills_last_error"):
        getattr(library, name).restype = ctypes.c_char_p
        getattr(library, name).argtypes = []
    sizes = [ctypes.c_int] * 5
    library.moe_drills_moe_layer_stage.restype = ctypes.c_char_p
    library.moe_drills_moe_layer_stage.argtypes = sizes
    library.moe_drills_moe_layer_workspace_bytes.restype = ctypes.c_size_t
    library.moe_drills_moe_layer_workspace_bytes.argtypes = sizes
    library.moe_drills_moe_layer.restype = ctypes.c_int
    library.moe_drills_moe_layer.argtypes = (
        [ctypes.c_void_p] * 5  # out, x, logits, w13, w2
        + sizes
        + [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        # renormalize, workspace, its bytes, stream
    )

    version = library.moe_drills_abi_version()
    if version != ABI_VERSION:
        raise LibraryMissing(
            f"{path} has version {version} of the interface, not {ABI_VERSION}.\n{_HOW_TO_BUILD}"
        )
    if library.moe_drills_backend() != b"cuda":
        raise LibraryMissing(f"{path} is the emulator's: it has no kernels for a GPU.\n{_HOW_TO_BUILD}")
    return library


def _sizes(x: Tensor, logits: Tensor, w13: Tensor, w2: Tensor, top_k: int):
    """T, E, K, H, I, after a look at everything that the library can't see in a pointer."""
    torch._check(x.dim() == 2 and logits.dim() == 2, lambda: "x is [T, H] and logits [T, E]")
    torch._check(w13.dim() == 3 and w2.dim() == 3, lambda: "w13 is [E, 2I, H] and w2 [E, H, I]")
    num_tokens, hidden_size = x.shape
    num_experts = logits.shape[1]
    intermediate_size = w2.shape[2]
    torch._check(logits.shape[0] == num_tokens, lambda: "logits has a row for each row of x")
    torch._check(
        tuple(w13.shape) == (num_experts, 2 * intermediate_size, hidden_size)
        and tuple(w2.shape) == (num_experts, hidden_size, intermediate_size),
        lambda: "w13 is [E, 2I, H] and w2 [E, H, I], with the E of logits and the H of x",
    )
    torch._check(
        x.dtype == w13.dtype == w2.dtype == torch.bfloat16 and logits.dtype == torch.float32,
        lambda: "x, w13 and w2 are bfloat16, logits is float32",
    )
    return num_tokens, num_experts, top_k, hidden_size, intermediate_size


@torch.library.custom_op("moe_drills::moe_layer", mutates_args=(), device_types="cuda")
def moe_layer(
    x: Tensor, logits: Tensor, w13: Tensor, w2: Tensor, top_k: int, renormalize: bool
) -> Tensor:
    """The MoE layer, from router logits to the output.

    x [T, H] bf16, logits [T, E] fp32, w13 [E, 2I, H] bf16 (gate rows, then up rows), w2 [E, H, I] bf16; returns
    [T, H] bf16. All contiguous and on one GPU.
    """
    sizes = _sizes(x, logits, w13, w2, top_k)
    for tensor in (x, logits, w13, w2):
        if not tensor.is_contiguous() or tensor.device != x.device:
            raise ValueError("moe_layer: x, logits, w13 and w2 are contiguous and on one GPU")
    library = load()
    with torch.cuda.device(x.device):
        out = torch.empty_like(x)
        # Of PyTorch's allocator: ordered on this stream, and part of the pool of a graph that is captured.
        num_bytes = library.moe_drills_moe_layer_workspace_bytes(*sizes)
        workspace = torch.empty(num_bytes + 255, dtype=torch.uint8, device=x.device)
        aligned_workspace = (workspace.data_ptr() + 255) // 256 * 256
        status = library.moe_drills_moe_layer(
            out.data_ptr(),
            x.data_ptr(),
            logits.data_ptr(),
            w13.data_ptr(),
            w2.data_ptr(),
            *sizes,
            int(renormalize),
            aligned_workspace,
            num_bytes,
            torch.cuda.current_stream(x.device).cuda_stream,
        )
    if status != 0:
        raise RuntimeError(library.moe_drills_last_error().decode())
    return out


@moe_layer.register_fake
def _(x, logits, w13, w2, top_k, renormalize):
    _sizes(x, logits, w13, w2, top_k)
    return torch.empty_like(x)


def stage_of(num_tokens: int, num_experts: int, top_k: int, hidden_size: int, intermediate_size: int) -> str:
    """The stage of the drills that computes a layer of these sizes: "m4"."""
    return load().moe_drills_moe_layer_stage(
        num_tokens, num_experts, top_k, hidden_size, intermediate_size
    ).decode()
