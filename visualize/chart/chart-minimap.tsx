import type { Signal } from '@preact/signals';
import type { JSX, TargetedPointerEvent } from 'preact';
import { definitionOf, shownSnapshot } from './chart-current.ts';
import { activeLeaves } from './chart-lights.ts';
import type { Picture } from './chart-picture.ts';

export interface VisiblePart {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const maxSize = { width: 170, height: 38 };

interface MinimapProps {
  readonly machine: string;
  readonly picture: Picture;
  readonly scale: number;
  readonly shownPart: Signal<VisiblePart>;
  readonly goTo: (left: number, top: number) => void;
}

/** Pressing or dragging moves the visible part of the chart. */
export function Minimap({ machine, picture, scale, shownPart, goTo }: MinimapProps): JSX.Element | null {
  const { left, top, width, height } = shownPart.value;
  if (picture.width * scale <= width + 30 && picture.height * scale <= height + 30) return null;
  const chart = definitionOf(machine);
  const activeNumbers = chart === undefined ? [] : activeLeaves(chart, shownSnapshot.value?.state ?? '');
  const availableSize = { width: Math.min(maxSize.width, width / 4), height: maxSize.height };
  const fitScale = Math.min(availableSize.width / picture.width, availableSize.height / picture.height);
  const scrollToPointer = (event: TargetedPointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const to = (clickOffset: number, viewLength: number): number => (clickOffset / fitScale) * scale - viewLength / 2;
    goTo(to(event.clientX - box.left, width), to(event.clientY - box.top, height));
  };
  return (
    <svg
      class="chart-minimap"
      aria-hidden="true"
      width={picture.width * fitScale}
      height={picture.height * fitScale}
      viewBox={`0 0 ${picture.width} ${picture.height}`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        scrollToPointer(event);
      }}
      onPointerMove={(event) => event.buttons === 1 && scrollToPointer(event)}
    >
      {[...picture.boxes].map(([number, box]) => (
        <rect key={number} {...box} class={activeNumbers.includes(number) ? 'active' : ''} />
      ))}
      <rect class="seen" x={left / scale} y={top / scale} width={width / scale} height={height / scale} />
    </svg>
  );
}
