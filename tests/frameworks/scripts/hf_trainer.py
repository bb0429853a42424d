"""`transformers.Trainer`; its arguments: batches a step, and whether it evaluates in between."""

import probe

probe.install()

import sys

from known import BATCH, FOLDER, STEPS, Net, Rows, optimizer_of, print_truth
from transformers import Trainer, TrainingArguments

accumulated, evaluates = int(sys.argv[1]), sys.argv[2] == "evaluate"


class Samples(Rows):
    def __getitem__(self, index):
        return {"x": super().__getitem__(index)}


class Model(Net):
    def forward(self, x):
        return {"loss": super().forward(x)}


model = Model()
trainer = Trainer(
    model,
    TrainingArguments(
        output_dir=str(FOLDER),
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        gradient_accumulation_steps=accumulated,
        max_steps=STEPS,
        eval_strategy="steps" if evaluates else "no",
        eval_steps=5,
        prediction_loss_only=True,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        label_names=[],
    ),
    train_dataset=Samples(STEPS * accumulated),
    eval_dataset=Samples(8, "evaluation"),
    optimizers=(optimizer_of(model), None),
)
trainer.train()
print_truth(trainer.state.global_step)
