"""moe_drills::moe_layer inside a Hugging Face Qwen3-MoE block, against the block's own output.

    python3 examples/pytorch/test_qwen3_moe.py

Needs a GPU, torch, transformers and libmoe_drills.so (moe_drills_op.py says how to build it). The block is small
and randomly initialised. Each shape is computed eagerly, under torch.compile, under torch.compile with CUDA
graphs, and as a CUDA graph that is captured once and replayed with other data. Prints a table; the exit code is
1 where anything differs, 2 where something is missing.

The block rounds to bf16 after every step, so ours is also held against the same layer in fp32. A token whose
K-th and K+1-th logits are equal, or so close that another order of additions swaps them, may go to either expert:
where the block chose other experts than ours, its output says nothing about ours; those tokens are counted.
"""

import sys

try:
    import torch
    import transformers
    from transformers.models.qwen3_moe import modeling_qwen3_moe
except ImportError as error:
    print(f"test_qwen3_moe: {error}. Install torch (with CUDA) and transformers.", file=sys.stderr)
    sys.exit(2)

import moe_drills_op
from qwen3_moe import DrillsMoeBlock

DEVICE = "cuda"
LARGEST_ERROR = 1e-2  # of our output, relative to the layer in fp32
LARGEST_DIFFERENCE = 3e-2  # to the output of the block, which rounds more often
LARGEST_SHARE_OF_OTHERS = 0.25  # tokens that the block routes otherwise

# name, tokens, E, K, H, I, norm_topk_prob
SHAPES = [
    ("one token", 1, 16, 4, 256, 128, True),
    ("few tokens", 7, 16, 4, 256, 128, True),
    ("no renorm", 130, 32, 8, 512, 256, False),
    ("K = 1", 200, 8, 1, 512, 192, False),
    ("odd sizes", 333, 24, 3, 264, 104, True),
    ("shape A", 4096, 64, 8, 2048, 768, True),
]

TABLE_HEADER = """\
error   ours against the layer in fp32, relative, the largest of three inputs
block   ours against the block's own output
others  tokens that the block routes to other experts, left out of `block`
same    are these the bytes that are computed eagerly; logits: from other logits, so it says nothing
shape           T   E  K     H    I  by  way                error     block others  same    verdict"""


def make_block(num_experts, top_k, hidden_size, intermediate_size, norm_topk_prob):
    config = transformers.Qwen3MoeConfig(
        hidden_size=hidden_size,
        moe_intermediate_size=intermediate_size,
        intermediate_size=intermediate_size,
        num_experts=num_experts,
        num_experts_per_tok=top_k,
        norm_topk_prob=norm_topk_prob,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        vocab_size=256,
    )
    config._experts_implementation = "eager"  # one expert after another, the plain definition
    block = modeling_qwen3_moe.Qwen3MoeSparseMoeBlock(config)
    block = block.to(device=DEVICE, dtype=torch.bfloat16).eval()
    # The parameters come zero or uninitialised: variance 1 / fan-in keeps every step near 1.
    for parameter in block.parameters():
        parameter.normal_(0.0, parameter.shape[-1] ** -0.5)
    return block


def own_output(block, x):
    out = block(x)
    return out[0] if isinstance(out, tuple) else out  # before transformers 5: with the router's logits


def experts_of(ours, logits):
    """Ids [T, K] in descending logit, the lower id first among equals: the rule of m1_align."""
    return torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, : ours.top_k]


def layer_in_fp32(ours, tokens, logits):
    """The layer from the same logits, every step in fp32."""
    ids = experts_of(ours, logits)
    weights = torch.softmax(logits, dim=-1).gather(-1, ids)
    if ours.renormalize:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    out = torch.zeros(tokens.shape, dtype=torch.float32, device=tokens.device)
    for expert in range(ours.w13.shape[0]):
        rows, slots = torch.where(ids == expert)
        if rows.numel() == 0:
            continue
        gate, up = (tokens[rows].float() @ ours.w13[expert].float().T).chunk(2, dim=-1)
        y = (torch.nn.functional.silu(gate) * up) @ ours.w2[expert].float().T
        out.index_add_(0, rows, y * weights[rows, slots, None])
    return out


def tokens_routed_alike(ours, tokens, logits):
    """Where the block, which routes in the same way from logits of its own, chooses the same experts."""
    own = torch.topk(torch.softmax(ours.logits(tokens), dim=-1), ours.top_k, dim=-1).indices
    return (own.sort(dim=-1).values == experts_of(ours, logits).sort(dim=-1).values).all(dim=-1)


def relative_error(got, want):
    return float((got.float() - want.float()).norm() / want.float().norm())


def as_graph(call, example):
    """Captured once; every call copies its input over the captured one and replays."""
    captured_x = example.clone()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call(captured_x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured_outputs = call(captured_x)

    def replay(x):
        captured_x.copy_(x)
        graph.replay()
        return captured_outputs

    return replay


def ways_of(ours, example):
    torch._dynamo.reset()
    return [
        ("eager", ours.with_logits),
        ("compile", torch.compile(ours.with_logits, fullgraph=True)),
        ("compile+graphs", torch.compile(ours.with_logits, fullgraph=True, mode="reduce-overhead")),
        ("CUDA graph", as_graph(ours.with_logits, example)),
    ]


def judge(block, ours, call, inputs):
    """Errors, differences to the block, the number of tokens that it routes otherwise, outputs with logits."""
    errors, differences, others, outputs = [], [0.0], 0, []
    for x in inputs:
        # Three times: reduce-overhead warms up, records, replays. A replay reuses its outputs: cloned.
        for _ in range(3):
            out, logits = (tensor.clone() for tensor in call(x))
        outputs.append((out, logits))
        tokens = x.reshape(-1, x.shape[-1])
        out = out.reshape(tokens.shape)
        errors.append(relative_error(out, layer_in_fp32(ours, tokens, logits)))
        alike = tokens_routed_alike(ours, tokens, logits)
        others += int((~alike).sum())
        if bool(alike.any()):
            own = own_output(block, x).reshape(tokens.shape)
            differences.append(relative_error(out[alike], own[alike]))
    return errors, differences, others, outputs


def same_bytes(outputs, eager_outputs):
    """Of the same logits the layer always makes the same bytes; the compiler may add up the logits otherwise."""
    pairs = list(zip(outputs, eager_outputs))
    if any(torch.equal(la, lb) and not torch.equal(a, b) for (a, la), (b, lb) in pairs):
        return "NO"
    return "yes" if all(torch.equal(la, lb) for (_, la), (_, lb) in pairs) else "logits"


def check_shape(name, num_tokens, num_experts, top_k, hidden_size, intermediate_size, norm):
    block = make_block(num_experts, top_k, hidden_size, intermediate_size, norm)
    ours = DrillsMoeBlock(block)
    inputs = [
        torch.randn(1, num_tokens, hidden_size, device=DEVICE, dtype=torch.bfloat16) for _ in range(3)
    ]
    stage = moe_drills_op.stage_of(num_tokens, num_experts, top_k, hidden_size, intermediate_size)
    failures = 0
    eager_outputs = None
    for way, call in ways_of(ours, inputs[0]):
        errors, differences, others, outputs = judge(block, ours, call, inputs)
        eager_outputs = eager_outputs or outputs
        same = same_bytes(outputs, eager_outputs)
        right = (  # `<=` is false for NaN
            all(error <= LARGEST_ERROR for error in errors)
            and all(difference <= LARGEST_DIFFERENCE for difference in differences)
            and (num_tokens < 100 or others <= LARGEST_SHARE_OF_OTHERS * num_tokens * len(inputs))
            and same != "NO"
        )
        failures += not right
        print(
            f"{name:11} {num_tokens:5} {num_experts:3} {top_k:2} {hidden_size:5} {intermediate_size:4}  {stage:3} "
            f"{way:14} {max(errors):9.2e} {max(differences):9.2e} {others:6}  {same:6}  "
            f"{'ok' if right else 'WRONG'}",
            flush=True,
        )
    return failures


def check_refusal():
    """A rule of the contract arrives as a sentence."""
    x = torch.zeros(4, 12, device=DEVICE, dtype=torch.bfloat16)
    w13 = torch.zeros(2, 16, 12, device=DEVICE, dtype=torch.bfloat16)
    w2 = torch.zeros(2, 12, 8, device=DEVICE, dtype=torch.bfloat16)
    logits = torch.zeros(4, 2, device=DEVICE)
    try:
        moe_drills_op.moe_layer(x, logits, w13, w2, 1, True)
    except RuntimeError as error:
        right = "H must be a positive multiple of 8" in str(error)
        print(f"H = 12 is refused: {error}  {'ok' if right else 'WRONG'}")
        return int(not right)
    print("H = 12 is not refused  WRONG")
    return 1


def check_operator():
    """PyTorch's own checks: the schema, and the fake kernel against the real one."""
    block = DrillsMoeBlock(make_block(8, 2, 64, 32, True))
    x = torch.randn(5, 64, device=DEVICE, dtype=torch.bfloat16)
    arguments = (x, block.logits(x), block.w13, block.w2, 2, True)
    results = torch.library.opcheck(
        moe_drills_op.moe_layer, arguments, test_utils=("test_schema", "test_faketensor")
    )
    print(f"torch.library.opcheck: {results}")
    return sum(result != "SUCCESS" for result in results.values())


def main():
    try:
        moe_drills_op.load()
    except moe_drills_op.LibraryMissing as error:
        print(f"test_qwen3_moe: {error}", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("test_qwen3_moe: PyTorch sees no GPU.", file=sys.stderr)
        return 2
    torch.manual_seed(1)
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.cuda.get_device_name()}"
    )
    with torch.no_grad():
        failures = check_operator() + check_refusal()
        print(TABLE_HEADER)
        failures += sum(check_shape(*shape) for shape in SHAPES)
    print(f"{failures} failed")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
