"""The ways to score a model's gradients that the benchmark of gradients races."""

from collections.abc import Iterator
from typing import Any

import torch

from inputs.rows import Rows
from scoring.gradients import losses
from scoring.gradients.layers import requiring_grad, scored_layers, shapes
from scoring.gradients.losses import Objective
from scoring.gradients.scorer import Scorer
from scoring.gradients.sketches import Projection


class Bench:
    """A model, what is scored of it, and the ways to do it."""

    def __init__(self, model: Any, which: str, batch_tokens: int, *, directed: bool = True, tied: bool = True) -> None:
        self.model, self.batch_tokens = model, batch_tokens
        self.layers = scored_layers(model, which)
        self.tied = scored_layers(model, which, embeddings=True)
        device = next(model.parameters()).device
        along = shapes(self.tied if tied else self.layers) if directed else {}
        self.direction = {n: torch.randn(1, *s, device=device) for n, s in along.items()}
        if directed:
            self.plain, self.quick = self.scorer(self.layers), self.scorer(self.layers, Projection())
            self.whole = self.scorer(self.tied) if tied else None

    def scorer(self, layers: Any, projection: Projection | None = None) -> Scorer:
        return Scorer(self.model, layers, {n: self.direction[n] for n in layers}, projection)

    def exact(self, rows: Rows) -> Any:
        return self.plain.score(rows, batch_tokens=self.batch_tokens)

    def embeddings(self, rows: Rows) -> Any:
        return self.whole.score(rows, batch_tokens=self.batch_tokens)

    def sketch(self, rows: Rows) -> Any:
        return self.quick.score(rows, batch_tokens=self.batch_tokens, exact=False)

    def bare(self, rows: Rows) -> None:
        for batch in self._activations_only(rows):
            losses.batch_losses(self.model, batch).sum().backward()

    def lean(self, rows: Rows) -> None:
        for batch in self._activations_only(rows):
            losses.backpropagate(self.model, batch, lambda *_: None)

    def _activations_only(self, rows: Rows) -> Iterator[losses.Batch]:
        """Yields batches, with gradients that flow to the embeddings of tokens and to no weight."""

        def begin(_: Any, __: Any, output: Any) -> None:
            output.requires_grad_()

        handle = self.model.get_input_embeddings().register_forward_hook(begin)
        with requiring_grad(self.model, []):
            for _, batch in losses.batches(self.model, rows, self.batch_tokens, Objective()):
                yield batch
        handle.remove()

    def one_by_one(self, rows: Rows) -> None:
        weights = [m.weight for m in self.layers.values()]

        def gradient(row: list[int]) -> Any:
            return torch.autograd.grad(losses.row_losses(self.model, *losses.padded([row])).sum(), weights)

        with requiring_grad(self.model, weights):
            mean = [torch.zeros_like(w) for w in weights]
            for row in rows:
                for total, g in zip(mean, gradient(row), strict=True):
                    total.add_(g / len(rows))
            for row in rows:
                for total, g in zip(mean, gradient(row), strict=True):
                    torch.linalg.vector_norm(g), torch.dot(g.flatten(), total.flatten())

    def vmap(self, rows: Rows) -> None:
        """Gradients of all rows at once: their memory is rows × weights."""
        weights = {n: p.detach() for n, p in self.model.named_parameters()}
        scored = {n: weights.pop(f"{n}.weight") for n in self.layers}
        batch = losses.causal(*losses.padded(rows))

        def loss(scored: Any, ids: Any, labels: Any, shares: Any) -> Any:
            state = {**weights, **{f"{n}.weight": w for n, w in scored.items()}}
            logits = torch.func.functional_call(self.model, state, (), {"input_ids": ids[None], "use_cache": False})
            each = torch.nn.functional.cross_entropy(logits.logits[0], labels, reduction="none")
            return (each * shares).sum()

        per_row = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # the fused kernels know no vmap
        mean = {n: g.mean(0) for n, g in per_row(scored, batch.ids, batch.labels, batch.weights.float()).items()}
        for n, g in per_row(scored, batch.ids, batch.labels, batch.weights.float()).items():
            torch.linalg.vector_norm(g, dim=(1, 2)), g.flatten(1) @ mean[n].flatten()
        self.model.set_attn_implementation(before)
