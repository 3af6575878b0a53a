/** Figures of the push benchmark. Pure. */
import type { XdsProtocol } from '../../sidecars/xds-types.ts';
import { medianOf } from '../statistics.ts';
import type { ChangeSample, PushSample } from './push-run.ts';

export interface Figure {
  readonly name: string;
  readonly unit: 'ms' | 's' | 'KiB' | 'MB' | 'MiB';
  /** Median of pilot-discovery. */
  readonly ours: number;
  /** Number of measurements. */
  readonly samples: number;
  /** Median of go-control-plane, measured alternately. */
  readonly reference?: number;
  /** `ours` divided by `reference`. */
  readonly ratio?: number;
  /** Upper limit of `ours`, exclusive. */
  readonly goal?: number;
  /** Upper limit of `ratio`, exclusive. */
  readonly ratioGoal?: number;
  /** `ours` divided by the same figure of the base row. */
  readonly growth?: number;
  /** Upper limit of `growth`, inclusive. */
  readonly growthGoal?: number;
  /** Name of the base row. */
  readonly growthOf?: string;
  /** Upper limit of `ours` on an idle machine. It is printed but not checked, because durations vary by half between runs. */
  readonly quietGoal?: number;
}

/** The goals apply to this size only. */
export const goalSize = { services: 1_000, sidecars: 500 } as const;

/** A ratio of 0.8 to 1.5 counts as level with go-control-plane, a lower one as better. */
const levelRatio = 1.5;

interface Measure {
  readonly name: string;
  readonly unit: Figure['unit'];
  readonly valuesOf: (sample: PushSample) => readonly number[];
  readonly goals: Readonly<Partial<Record<XdsProtocol, number>>>;
  readonly ratioGoal?: number;
}

const changes = (change: 'endpoint' | 'route', value: (sample: ChangeSample) => number) => (sample: PushSample) =>
  sample[change].map(value);
const seconds = (ms: number): number => ms / 1_000;

/** Upper limits by figure name. */
export type Goals = Readonly<Record<string, number>>;

const measures: readonly Measure[] = [
  { name: 'initial CPU', unit: 's', valuesOf: (sample) => [seconds(sample.initialCpuMs)], goals: { delta: 8 } },
  { name: 'initial wall', unit: 's', valuesOf: (sample) => [seconds(sample.initialMs)], goals: { delta: 8 } },
  {
    name: 'endpoint → last ACK',
    unit: 'ms',
    valuesOf: changes('endpoint', ({ ackMs }) => ackMs),
    goals: { delta: 130, sotw: 270 },
    ratioGoal: levelRatio,
  },
  {
    name: 'endpoint CPU',
    unit: 's',
    valuesOf: changes('endpoint', ({ cpuMs }) => seconds(cpuMs)),
    goals: { delta: 0.08, sotw: 0.24 },
    ratioGoal: levelRatio,
  },
  {
    name: 'route → last ACK',
    unit: 'ms',
    valuesOf: changes('route', ({ ackMs }) => ackMs),
    goals: { delta: 400, sotw: 970 },
    ratioGoal: levelRatio,
  },
  {
    name: 'route CPU',
    unit: 's',
    valuesOf: changes('route', ({ cpuMs }) => seconds(cpuMs)),
    goals: { delta: 0.5, sotw: 0.6 },
    ratioGoal: levelRatio,
  },
  { name: 'peak memory', unit: 'MiB', valuesOf: ({ peakMib }) => [peakMib], goals: { delta: 400 } },
  // CPU time of the measurement itself, on the same two cores.
  {
    name: "initial, the client's CPU",
    unit: 's',
    valuesOf: (sample) => [seconds(sample.initialClientCpuMs)],
    goals: {},
  },
  {
    name: "endpoint, the client's CPU",
    unit: 's',
    valuesOf: changes('endpoint', ({ clientCpuMs }) => seconds(clientCpuMs)),
    goals: {},
  },
  {
    name: "route, the client's CPU",
    unit: 's',
    valuesOf: changes('route', ({ clientCpuMs }) => seconds(clientCpuMs)),
    goals: {},
  },
];

/**
 * @param prefix prefix of each name, e.g. the protocol
 * @param withGoals false for a size other than {@link goalSize}
 */
export function pushFigures(
  prefix: string,
  protocol: XdsProtocol,
  { ours, reference }: { readonly ours: readonly PushSample[]; readonly reference: readonly PushSample[] },
  withGoals: boolean,
): Figure[] {
  return measures.map(({ name, unit, valuesOf, goals, ratioGoal }) =>
    figure({
      name: `${prefix}: ${name}`,
      unit,
      ours: ours.flatMap(valuesOf),
      reference: reference.flatMap(valuesOf),
      ...(withGoals && { goal: goals[protocol], ratioGoal }),
    }),
  );
}

/** Figures of a row of meshes, compared with go-control-plane and with another row. */
export function varietyFigures(
  row: string,
  {
    ours,
    reference,
    ratioGoals,
    quietGoals = {},
  }: {
    readonly ours: readonly PushSample[];
    readonly reference: readonly PushSample[];
    readonly ratioGoals: Goals;
    readonly quietGoals?: Goals;
  },
  base?: { readonly row: string; readonly goals: Goals; readonly samples: readonly PushSample[] },
): Figure[] {
  return measures.map(({ name, unit, valuesOf }) => {
    const measuredFigure: MeasuredFigure = {
      name: `${row}: ${name}`,
      unit,
      ours: ours.flatMap(valuesOf),
      reference: reference.flatMap(valuesOf),
      ratioGoal: ratioGoals[name],
      quietGoal: quietGoals[name],
    };
    if (base === undefined) return figure(measuredFigure);
    return grownFigure(measuredFigure, { of: base.row, values: base.samples.flatMap(valuesOf) }, base.goals[name]);
  });
}

/** Measurements of one figure, and its limits. */
export interface MeasuredFigure {
  readonly name: string;
  readonly unit: Figure['unit'];
  readonly ours: readonly number[];
  readonly reference?: readonly number[];
  readonly goal?: number | undefined;
  readonly ratioGoal?: number | undefined;
  readonly quietGoal?: number | undefined;
}

/**
 * A figure that is compared with the same figure of a base row. @param baseline without values there is no growth, and
 * its goal is not checked
 */
export function grownFigure(
  measuredFigure: MeasuredFigure,
  baseline: { readonly of: string; readonly values: readonly number[] },
  growthGoal: number | undefined,
): Figure {
  const current = figure(measuredFigure);
  const base = medianOf(baseline.values);
  return {
    ...current,
    ...(baseline.values.length > 0 && base > 0 && { growth: rounded(current.ours / base) }),
    ...(growthGoal !== undefined && { growthGoal }),
    growthOf: baseline.of,
  };
}

export function figure({ name, unit, ours, reference = [], goal, ratioGoal, quietGoal }: MeasuredFigure): Figure {
  const median = medianOf(ours);
  const referenceMedian = medianOf(reference);
  return {
    name,
    unit,
    ours: rounded(median),
    samples: ours.length,
    ...(reference.length > 0 && {
      reference: rounded(referenceMedian),
      ratio: rounded(median / referenceMedian),
    }),
    ...(ratioGoal !== undefined && { ratioGoal }),
    ...(goal !== undefined && { goal }),
    ...(quietGoal !== undefined && { quietGoal }),
  };
}

export function missedGoals({ name, unit, ours, ratio, goal, ratioGoal, growth, growthGoal }: Figure): string[] {
  return [
    ...(goal === undefined || ours < goal ? [] : [`${name}: ${ours} ${unit}, the goal is under ${goal} ${unit}`]),
    ...(ratio === undefined || ratioGoal === undefined || ratio <= ratioGoal
      ? []
      : [`${name}: ${ratio} × go-control-plane's, the goal is at most ${ratioGoal}`]),
    ...(growth === undefined || growthGoal === undefined || growth <= growthGoal
      ? []
      : [`${name}: grows ${growth} ×, the goal is at most ${growthGoal}`]),
  ];
}

/** Returns one reason per goal of the figure that cannot be checked. */
function uncheckedReasons({ ratio, ratioGoal, growth, growthGoal, growthOf }: Figure): string[] {
  return [
    ...(ratioGoal !== undefined && ratio === undefined ? ['go-control-plane was not measured'] : []),
    ...(growthGoal !== undefined && growth === undefined ? [`${growthOf} was not measured`] : []),
  ];
}

/** Returns one sentence per reason why goals could not be checked. */
export function uncheckedGoals(figures: readonly Figure[]): string[] {
  const goalsByReason = Map.groupBy(
    figures.flatMap((figure) => uncheckedReasons(figure).map((reason) => ({ reason, name: figure.name }))),
    ({ reason }) => reason,
  );
  return [...goalsByReason].map(
    ([reason, all]) => `not judged, as ${reason}: ${all.map(({ name }) => name).join('; ')}`,
  );
}

/** Figures whose only goal limits growth. */
export const onlyGrowthGoals = (figures: readonly Figure[]): Figure[] =>
  figures.filter(
    ({ goal, ratioGoal, growth, growthGoal }) =>
      growthGoal !== undefined && growth !== undefined && goal === undefined && ratioGoal === undefined,
  );

export function formatFigure(figure: Figure): string {
  const { name, unit, ours, reference, ratio, goal, ratioGoal, growth, growthGoal, quietGoal } = figure;
  const state =
    goal === undefined && ratioGoal === undefined && growthGoal === undefined
      ? ''
      : missedGoals(figure).length > 0
        ? 'MISSED'
        : uncheckedReasons(figure).length > 0
          ? 'NOT JUDGED'
          : 'ok';
  return [
    name.padEnd(44),
    `${ours} ${unit}`.padStart(11),
    reference === undefined ? ''.padStart(26) : `go ${reference}, ${ratio} ×`.padStart(26),
    goal === undefined ? ''.padStart(12) : `goal < ${goal}`.padStart(12),
    ratioGoal === undefined ? ''.padStart(8) : `≤ ${ratioGoal} ×`.padStart(8),
    ...(growth === undefined ? [] : [`grows ${growth} ×`.padStart(13)]),
    ...(growthGoal === undefined ? [] : [`≤ ${growthGoal} ×`.padStart(8)]),
    ...(quietGoal === undefined ? [] : [`(a quiet machine: < ${quietGoal} ${unit})`]),
    state,
  ]
    .join('  ')
    .trimEnd();
}

const rounded = (value: number): number => Number(value.toPrecision(3));
