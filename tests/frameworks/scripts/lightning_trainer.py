"""Lightning's Trainer, with automatic or manual optimization (the argument)."""

import probe

probe.install()

import sys

import lightning
from known import BATCH, FOLDER, Net, Rows, optimizer_of, print_truth
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    def __init__(self, manual):
        super().__init__()
        self.net = Net()
        self.automatic_optimization = not manual

    def training_step(self, batch, index):
        loss = self.net(batch)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def validation_step(self, batch, index):
        self.net(batch)

    def configure_optimizers(self):
        return optimizer_of(self)


evaluates = sys.argv[1] == "evaluate"
trainer = lightning.Trainer(
    accelerator="cpu",
    max_epochs=1,
    val_check_interval=4 if evaluates else None,
    limit_val_batches=2 if evaluates else 0,
    num_sanity_val_steps=0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    default_root_dir=FOLDER,
)
trainer.fit(
    Module(manual=sys.argv[1] == "manual"),
    DataLoader(Rows(), batch_size=BATCH),
    DataLoader(Rows(2, "evaluation"), batch_size=BATCH),
)
print_truth(trainer.global_step)
