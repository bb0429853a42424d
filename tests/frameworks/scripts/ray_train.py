"""Ray Train: the loop runs in a thread of a worker process that Ray starts."""

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def train():
    import probe

    probe.install()

    import known
    import ray.train.torch
    from torch.utils.data import DataLoader

    known.here()
    model = ray.train.torch.prepare_model(known.Net())
    optimizer = known.optimizer_of(model)
    loader = DataLoader(known.Rows(), batch_size=known.BATCH)
    for batch in ray.train.torch.prepare_data_loader(loader):
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    known.print_truth(known.STEPS)
    known.wait_until_read()


if __name__ == "__main__":
    import os

    folder = os.environ["KNOWN_FOLDER"]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    TorchTrainer(
        train,
        scaling_config=ScalingConfig(num_workers=1, use_gpu=False),
        run_config=RunConfig(storage_path=folder),
    ).fit()
