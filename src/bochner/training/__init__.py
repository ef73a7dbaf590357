"""Training: stages, budgets, the compiled chunk of steps, and the loop over chunks."""

from bochner.training.budget import SCHEDULES, AbstractSchedule, Budget, Constant, Cosine, KLWeight
from bochner.training.checkpoints import CheckpointError, Checkpoints, TrainingStoppedError
from bochner.training.engine import AbstractEngine, OneDevice
from bochner.training.loop import Trained, TrainingDivergedError, train
from bochner.training.progress import AbstractCallback, ProgressBar, Record
from bochner.training.recorder import HeldOut
from bochner.training.stages import Plan, Stage, trainable
from bochner.training.tensorboard import TensorBoardLogger

__all__ = [
    "SCHEDULES",
    "AbstractCallback",
    "AbstractEngine",
    "AbstractSchedule",
    "Budget",
    "CheckpointError",
    "Checkpoints",
    "Constant",
    "Cosine",
    "HeldOut",
    "KLWeight",
    "OneDevice",
    "Plan",
    "ProgressBar",
    "Record",
    "Stage",
    "TensorBoardLogger",
    "Trained",
    "TrainingDivergedError",
    "TrainingStoppedError",
    "train",
    "trainable",
]
