"""Forecasts of models that are drawn, as evidence for lessons and for the reading test."""

import numpy as np

from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.abilities import Abilities, describe_effects, regress_on_order
from lakewright.engineer.difficulty.forecasting import Forecast, predict_grid
from lakewright.engineer.difficulty.model import DifficultyModel, DifficultySettings
from lakewright.engineer.difficulty.regression import count_features
from lakewright.engineer.space import DesignSpace

GROUPS = 50  # that such a model is supposed to be fitted to


def draw_abilities_forecast(
    design: Design, space: DesignSpace, rng: np.random.Generator, settings: DifficultySettings
) -> Forecast:
    """The forecast of abilities and leverages that are drawn: strata are alike or far apart.

    Args:
        design: gives the strata.
        space: the design space.
        rng: consumed.
        settings: the settings of the fit.
    """
    effects, rates = describe_effects(space)
    size, order = len(effects.spread), regress_on_order(space)
    shared = effects.mean + rng.uniform(0.2, 0.8) * effects.deviation * rng.normal(size=effects.mean.shape)
    drawn = order @ shared.T + rng.uniform(0.3, 1.5) * effects.spread * rng.normal(size=(len(order), size))
    mean = np.concatenate([drawn, np.tile(rates.mean, (len(order), 1))], axis=1)
    leverage = np.exp(rng.uniform(0, 1) * rng.normal(size=len(order)))
    covariance = np.tile(0.1 * np.eye(mean.shape[1]), (len(order), 1, 1))
    known = Abilities(mean.tolist(), covariance.tolist(), 1.0, 0.1, (leverage / leverage.mean()).tolist())
    model = DifficultyModel([], [], GROUPS, 1.0, settings.resolved_objective, reach=settings.reach, abilities=known)
    return Forecast(model, predict_grid(design, model, space), [], 0.5, 0.5)


def draw_forecast(
    design: Design, space: DesignSpace, rng: np.random.Generator, settings: DifficultySettings
) -> Forecast:
    """The forecast of a model whose weights are drawn.

    Args:
        design: gives the strata.
        space: the design space.
        rng: consumed.
        settings: the settings of the fit.

    Weights are drawn from their prior, or nearer to 0 if strata have effects of their own, as nearly all P(valid)
    would be 0 or 1 otherwise.
    """
    weights = rng.normal(size=count_features(space, settings.by_size))
    if settings.by_size or not space.ranked:
        weights = weights * rng.uniform(0.1, 0.6)
    covariance = (0.1 * np.eye(len(weights))).tolist()
    model = DifficultyModel(
        weights.tolist(), covariance, GROUPS, 1.0, settings.resolved_objective, settings.by_size, settings.reach
    )
    return Forecast(model, predict_grid(design, model, space), [], 0.5, 0.5)
