import type { JSX } from 'preact';
import { memo } from 'preact/compat';
import { jumpTo, recording } from '../model/place.ts';
import type { Lane } from '../model/recording/lanes.ts';
import { clockText, durationText } from '../model/recording/words.ts';
import {
  type Bar,
  barsOf,
  type Cluster,
  clustersOf,
  clusterTitle,
  labelsOf,
  stepsOf,
} from '../model/time/drawn-lane.ts';
import { axisTicks } from '../model/time/time-axis.ts';
import { markShapes } from '../parts/mark-shape.tsx';
import { axisHeight, laneHeight } from './timeline-scroll.tsx';
import { axis, endTime, width } from './timeline-view.ts';

const barHeight = 15;

export function Axis(): JSX.Element {
  const ticks = axisTicks(axis.value, recording.value?.header.startedAt ?? '');
  return (
    <svg class="axis" width={width.value} height={axisHeight} aria-hidden="true">
      {ticks.map(({ t, x, text, wall, wallX }) => (
        <g key={t} transform={`translate(${x.toFixed(1)} 0)`}>
          <path d="M0.5 0v30" />
          <text x={4} y={11}>
            {text}
          </text>
          <text class="wall" x={wallX - x} y={24}>
            {wall}
          </text>
        </g>
      ))}
    </svg>
  );
}

interface LaneRowProps {
  readonly lane: Lane;
  /** Changes with the lane's content, because the lane object is mutated. */
  readonly version: number;
}

/** A step does not redraw the lane. */
export const LaneRow = memo(function LaneRow({ lane }: LaneRowProps): JSX.Element {
  const bars = barsOf(lane, axis.value, endTime.value);
  const clusters = clustersOf(lane, axis.value);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a picture is no form's group
    <svg
      class="lane"
      data-lane={lane.name}
      width={width.value}
      height={laneHeight}
      role="group"
      aria-label={laneText(lane)}
    >
      {lane.counts.length > 0 && <LaneCounts lane={lane} />}
      {bars.map((bar) => (
        <BarShape key={`${bar.index} ${bar.from}`} bar={bar} lane={lane} />
      ))}
      {labelsOf(clusters, bars, width.value).map(({ x, text }) => (
        // biome-ignore lint/a11y/noAriaHiddenOnFocusable: words beside a mark take no focus, and the mark says them
        <text key={x} class="mark-label" aria-hidden="true" x={x} y={laneHeight / 2 + 4}>
          {text}
        </text>
      ))}
      {clusters.map((cluster) => (
        <MarkShape key={cluster.marks[0]!.index} cluster={cluster} lane={lane} />
      ))}
    </svg>
  );
});

/** Only visible lanes have bars and marks in the page. */
export function EmptyLaneRow({ name }: { readonly name: string }): JSX.Element {
  return <svg class="lane" data-lane={name} width={width.value} height={laneHeight} aria-hidden="true" />;
}

function BarShape({ bar, lane }: { readonly bar: Bar; readonly lane: Lane }): JSX.Element {
  const { x, width: barWidth, phase, from, to, mergedCount, index, text } = bar;
  const length = to === undefined ? 'ongoing' : durationText(to - from);
  const phaseText = text === undefined ? phase : `${phase}, ${text}`;
  const description = `${mergedCount > 1 ? `${mergedCount} short phases (zoom in to see them)` : `${phaseText}, ${length}`}, from ${clockText(from)}`;
  return (
    // biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: reached with the arrows of the lanes, which lead to its record; a press goes through time
    <g
      class="bar"
      data-phase={phase}
      data-tone={recording.value?.lanes.colourOf(phase)}
      data-from={from}
      data-to={to}
      data-index={index}
      data-x={x}
      tabindex={-1}
      role="img"
      aria-label={`${lane.title}: ${description}`}
    >
      <rect x={x} y={(laneHeight - barHeight) / 2} width={barWidth} height={barHeight} rx={Math.min(3, barWidth / 3)} />
      {barWidth > phase.length * 6.2 + 10 && (
        <text x={x + 6} y={laneHeight / 2 + 4}>
          {phase}
        </text>
      )}
      <title>
        {lane.title}: {description}
      </title>
    </g>
  );
}

function MarkShape({ cluster, lane }: { readonly cluster: Cluster; readonly lane: Lane }): JSX.Element {
  const { x, kind, marks } = cluster;
  const worstMark = marks.find((mark) => mark.kind === kind) ?? marks[0]!;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a picture holds no HTML button
    <g
      class="mark"
      data-kind={kind}
      data-count={marks.length}
      transform={`translate(${x.toFixed(1)} ${laneHeight / 2})`}
      data-index={worstMark.index}
      data-x={x}
      tabindex={-1}
      role="button"
      aria-label={`${lane.title}: ${clusterTitle(cluster, clockText)}`}
      onPointerDown={(event) => event.stopPropagation()}
      onClick={() => jumpTo(worstMark.index)}
    >
      <rect class="target" x={-8} y={-12} width={16} height={24} />
      <path class="shape" d={markShapes[kind]} />
      {marks.length > 1 && <circle class="more" cx={6} cy={-6} r={2.5} />}
      <title>{clusterTitle(cluster, clockText)}</title>
    </g>
  );
}

function LaneCounts({ lane }: { readonly lane: Lane }): JSX.Element {
  const points = stepsOf(lane, axis.value);
  const maxCount = Math.max(1, ...points.map(({ n }) => n));
  const y = (n: number): number => laneHeight - 2 - (n / maxCount) * (laneHeight - 6);
  const line = points.map(({ x, n }, i) => `${i === 0 ? `M${x} ${y(n)}` : `H${x}V${y(n)}`}`).join('');
  return (
    <g class="counts">
      <path class="area" d={`${line}H${width.value}V${laneHeight}H0z`} />
      <path class="line" d={`${line}H${width.value}`} />
      <text x={4} y={11}>
        {maxCount}
      </text>
      <title>At most {maxCount} actors at once</title>
    </g>
  );
}

function laneText({ title, spans, marks, counts }: Lane): string {
  const descriptions = [
    ...(spans.length > 0
      ? [
          `${spans.length} ${spans.length === 1 ? 'phase' : 'phases'}, now ${spans.at(-1)!.to === undefined ? spans.at(-1)!.phase : 'ended'}`,
        ]
      : []),
    ...(marks.length > 0
      ? [`${marks.length} ${marks.length === 1 ? 'mark' : 'marks'}, last: ${marks.at(-1)!.title}`]
      : []),
    ...(counts.length > 0 ? [`${counts.at(-1)!.n} now`] : []),
  ];
  return `${title}: ${descriptions.join('; ') || 'empty'}`;
}
