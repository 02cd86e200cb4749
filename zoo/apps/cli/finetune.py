"""`zoo finetune`: train a checkpoint on a file of examples."""

from __future__ import annotations

import argparse

from ...optional import import_optional


def finetune(args: argparse.Namespace) -> None:
    import_optional("torch", "training", "train")
    from ..train import finetune as train

    settings = ("batch_size", "accumulate", "learning_rate", "schedule", "precision", "seed", "save_every", "shard")
    folder = train(
        args.name,
        args.data,
        args.output,
        task=args.task,
        text=args.text,
        label=args.label,
        device=args.device,
        epochs=args.epochs,
        steps=args.steps,
        lora=args.lora,
        eval_data=args.eval,
        held_out=args.held_out,
        settings={name: getattr(args, name) for name in settings},
        lock=args.lock,
        revision=args.revision,
        local_files_only=args.local_files_only,
    )
    print(folder)
