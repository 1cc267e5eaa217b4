"""A Hugging Face Qwen3-MoE block that computes with moe_drills::moe_layer."""

import torch
from torch import Tensor

import moe_drills_op


def fused_weights(block: torch.nn.Module) -> tuple[Tensor, Tensor]:
    """w13 [E, 2I, H] and w2 [E, H, I] of a Qwen3MoeSparseMoeBlock.

    transformers 5 stores the experts fused, in this very layout; before that they were a list of modules, whose
    weights are copied together here.
    """
    experts = block.experts
    if hasattr(experts, "gate_up_proj"):
        w13, w2 = experts.gate_up_proj, experts.down_proj
        if w13.shape[2] != block.gate.weight.shape[1]:
            raise ValueError(f"gate_up_proj {tuple(w13.shape)} is not [E, 2I, H]")
        return w13.detach(), w2.detach()
    w13 = torch.stack([torch.cat([e.gate_proj.weight, e.up_proj.weight]) for e in experts])
    w2 = torch.stack([e.down_proj.weight for e in experts])
    return w13.detach().contiguous(), w2.detach().contiguous()


def routing_of(block: torch.nn.Module) -> tuple[int, bool]:
    """top_k, and whether the weights of the chosen experts are divided by their sum."""
    owner = block.gate if hasattr(block.gate, "top_k") else block
    return int(owner.top_k), bool(owner.norm_topk_prob)


class DrillsMoeBlock(torch.nn.Module):
    """Takes the place of a Qwen3MoeSparseMoeBlock and shares its weights."""

    def __init__(self, block: torch.nn.Module):
        super().__init__()
        w13, w2 = fused_weights(block)
        self.register_buffer("gate_weight", block.gate.weight.detach(), persistent=False)
        self.register_buffer("w13", w13, persistent=False)
        self.register_buffer("w2", w2, persistent=False)
        self.top_k, self.renormalize = routing_of(block)

    def logits(self, tokens: Tensor) -> Tensor:
        # In bf16, as the block's own router has them; from there on the router is fp32 too.
        return torch.nn.functional.linear(tokens, self.gate_weight).float()

    def with_logits(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """The output, and the logits [T, E] that it was routed by."""
        tokens = hidden_states.reshape(-1, hidden_states.shape[-1])
        logits = self.logits(tokens)
        out = moe_drills_op.moe_layer(tokens, logits, self.w13, self.w2, self.top_k, self.renormalize)
        return out.reshape(hidden_states.shape), logits

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.with_logits(hidden_states)[0]
