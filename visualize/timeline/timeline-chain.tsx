import type { JSX } from 'preact';
import { causalChain, chainAnchor } from '../model/causal-chain.ts';
import { chainPoints, Parents } from '../model/chain-lanes.ts';
import { recording, size } from '../model/place.ts';
import type { Lane } from '../model/recording/lanes.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { axisHeight, laneHeight } from './timeline-scroll.tsx';
import { axis, width } from './timeline-view.ts';

const parentsByRecording = new WeakMap<PageRecording, Parents>();
/** Closer points on one lane are merged. */
const minDistance = 5;

/** A hollow point represents an actor without a lane. */
export function ChainPath({ lanes }: { readonly lanes: readonly Lane[] }): JSX.Element | null {
  const openRecording = recording.value;
  const chainIndexes = causalChain.value?.indexes ?? [];
  if (openRecording === undefined || chainIndexes.length < 2 || size.value === 0) return null;
  const parents = parentsByRecording.get(openRecording) ?? new Parents();
  parentsByRecording.set(openRecording, parents);
  parents.grow(openRecording);
  const points: { index: number; x: number; y: number; isFolded: boolean }[] = [];
  for (const { index, t, row, isFolded } of chainPoints(chainIndexes, openRecording, lanes, parents)) {
    const x = axis.value.xOf(t);
    const y = row < 0 ? axisHeight : axisHeight + row * laneHeight + laneHeight / 2;
    const previousPoint = points.at(-1);
    if (previousPoint === undefined || previousPoint.y !== y || Math.abs(previousPoint.x - x) >= minDistance)
      points.push({ index, x, y, isFolded });
  }
  const isVisibleX = (x: number): boolean => x >= -1 && x <= width.value + 1;
  return (
    <svg
      class="story-path"
      data-whole={chainAnchor.value !== undefined || undefined}
      width={width.value}
      height={axisHeight + lanes.length * laneHeight}
      aria-hidden="true"
    >
      <path d={points.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y}`).join('')} />
      {points
        .filter(({ x }) => isVisibleX(x))
        .map(({ index, x, y, isFolded }) => (
          <circle key={index} class={isFolded ? 'folded' : ''} cx={x.toFixed(1)} cy={y} r={3.2} />
        ))}
    </svg>
  );
}
