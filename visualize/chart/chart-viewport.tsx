import type { Signal } from '@preact/signals';
import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { now, place, recording } from '../model/place.ts';
import { around, firstScale, scaleToFit, scrollToKeep, scrollToShow, zoomed } from './chart-camera.ts';
import { definitionOf, shownActor, shownSnapshot, takenNow } from './chart-current.ts';
import { activeLeaves, activeStates, countdownsAt } from './chart-lights.ts';
import { pictureOf } from './chart-picture.ts';
import { ChartScene } from './chart-scene.ts';
import type { Taken } from './chart-steps.ts';

const zoomStep = 1.2;
/** Steps that come in one frame of a live trace are still shown as a movement. */
const maxAnimated = 40;
/** Who steps quicker than this sees where things stand, and no movement. */
const calmMs = 150;
const nothingTaken: Taken = { now: [], last: [] };
/** How a machine's chart was looked at last. */
const scales = new Map<string, number>();

/** A machine's chart, lit for the shown actor; zoomed with Ctrl and the wheel, dragged, scrolled. */
export function ChartViewport({ machine, text }: { machine: string; text: string }): JSX.Element {
  const viewport = useRef<HTMLDivElement>(null);
  const scene = useMemo(() => new ChartScene(pictureOf(text)), [text]);
  const scale = useSignal(scales.get(machine));
  useScene(viewport, scene, scale, machine);
  useLights(viewport, scene, machine, scale);
  const zoomTo = (next: number): void => zoomAround(viewport.current, scale, next);
  const fit = (): void => {
    if (viewport.current !== null) zoomTo(scaleToFit(scene.picture, sizeOf(viewport.current)));
  };
  const commands: Record<string, () => void> = {
    '+': () => zoomTo(zoomed(scale.value ?? 1, zoomStep)),
    '=': () => zoomTo(zoomed(scale.value ?? 1, zoomStep)),
    '-': () => zoomTo(zoomed(scale.value ?? 1, 1 / zoomStep)),
    '0': fit,
    '1': () => zoomTo(1),
  };
  return (
    <div class="chart-frame">
      {/* biome-ignore lint/a11y/useSemanticElements: a region that scrolls, not a form's group */}
      <div
        class="chart-viewport"
        ref={viewport}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
        tabIndex={0}
        role="group"
        aria-label={`Chart of ${machine}; plus, minus, 0 and 1 zoom, Shift and arrows scroll`}
        onKeyDown={(event) => onKey(event, viewport.current, commands)}
        onPointerDown={beginDrag}
        onWheel={(event) => onWheel(event, viewport.current, scale)}
      />
      <fieldset class="chart-zoom" aria-label="Zoom">
        <button type="button" title="Smaller (−)" aria-label="Smaller" onClick={commands['-']}>
          −
        </button>
        <button type="button" title="Real size (1)" aria-label="Real size" class="chart-scale" onClick={commands['1']}>
          {Math.round((scale.value ?? 1) * 100)} %
        </button>
        <button type="button" title="Larger (+)" aria-label="Larger" onClick={commands['+']}>
          +
        </button>
        <button type="button" title="The whole chart (0)" onClick={fit}>
          Fit
        </button>
      </fieldset>
    </div>
  );
}

type Viewport = { readonly current: HTMLDivElement | null };

/** Puts the picture in, and keeps its size. */
function useScene(viewport: Viewport, scene: ChartScene, scale: Signal<number | undefined>, machine: string): void {
  useLayoutEffect(() => {
    const element = viewport.current!;
    element.replaceChildren(scene.svg);
    scale.value ??= firstScale(scene.picture, sizeOf(element));
    applyScale(scene, scale.value);
    return () => scene.svg.remove();
  }, [scene, viewport, scale]);
  useSignalEffect(() => {
    if (scale.value === undefined) return;
    scales.set(machine, scale.value);
    applyScale(scene, scale.value);
  });
}

function useLights(viewport: Viewport, scene: ChartScene, machine: string, scale: Signal<number | undefined>): void {
  const shown = useRef({ place: -1, leaves: '', at: 0 });
  useSignalEffect(() => {
    const at = place.value;
    const snapshot = shownSnapshot.value;
    const chart = definitionOf(machine);
    if (chart === undefined) return;
    const taken = snapshot === undefined ? nothingTaken : takenNow(snapshot);
    scene.light(activeStates(chart, snapshot?.state ?? ''), taken);
    const forward = at - shown.current.place;
    const isCalm = performance.now() - shown.current.at > calmMs;
    if (snapshot !== undefined && forward > 0 && forward <= maxAnimated && isCalm && !reducedMotion()) {
      if (steppedSince(snapshot, shown.current.place)) scene.animate(taken.now.length > 0 ? taken.now : taken.last);
    }
    const leaves = `${shownActor.value} ${snapshot?.state}`;
    if (leaves !== shown.current.leaves)
      showActive(viewport.current, scene, activeLeaves(chart, snapshot?.state ?? ''), scale.peek() ?? 1);
    shown.current = { place: at, leaves, at: performance.now() };
  });
  useSignalEffect(() => {
    const chart = definitionOf(machine);
    const timers = shownSnapshot.value?.timers ?? [];
    if (chart !== undefined) scene.countDown(timers.length === 0 ? [] : countdownsAt(chart, timers, now.value));
  });
  // What an earlier scene of this machine had shown tells nothing about this one.
  useEffect(() => {
    shown.current = { ...shown.current, place: place.peek() };
  }, [scene]);
}

function steppedSince({ actor }: ActorSnapshot, before: number): boolean {
  const records = recording.peek()?.records ?? [];
  for (let index = place.peek(); index > before; index--) {
    const record = records[index];
    if (record !== undefined && (record.kind === 'transition' || record.kind === 'step') && record.actor === actor)
      return true;
  }
  return false;
}

function showActive(element: HTMLDivElement | null, scene: ChartScene, leaves: readonly number[], scale: number): void {
  const box = around(leaves.flatMap((number) => scene.picture.boxes.get(number) ?? []));
  if (element === null || box === undefined) return;
  const { scrollLeft, scrollTop, clientWidth, clientHeight } = element;
  const left = scrollToShow({ from: box.x, length: box.width }, scale, scrollLeft, clientWidth);
  const top = scrollToShow({ from: box.y, length: box.height }, scale, scrollTop, clientHeight);
  if (left === undefined && top === undefined) return;
  element.scrollTo({
    left: left ?? scrollLeft,
    top: top ?? scrollTop,
    behavior: reducedMotion() ? 'instant' : 'smooth',
  });
}

function applyScale({ svg, picture }: ChartScene, scale: number): void {
  svg.setAttribute('width', String(picture.width * scale));
  svg.setAttribute('height', String(picture.height * scale));
}

function zoomAround(
  element: HTMLDivElement | null,
  scale: Signal<number | undefined>,
  next: number,
  at?: { readonly x: number; readonly y: number },
): void {
  if (element === null) return;
  const { scrollLeft, scrollTop, clientWidth, clientHeight } = element;
  const before = scale.peek() ?? 1;
  const { x, y } = at ?? { x: clientWidth / 2, y: clientHeight / 2 };
  scale.value = next;
  element.scrollLeft = scrollToKeep(scrollLeft, x, before, next);
  element.scrollTop = scrollToKeep(scrollTop, y, before, next);
}

function onWheel(event: WheelEvent, element: HTMLDivElement | null, scale: Signal<number | undefined>): void {
  if (element === null || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  const { left, top } = element.getBoundingClientRect();
  const next = zoomed(scale.peek() ?? 1, Math.exp(-event.deltaY / 300));
  zoomAround(element, scale, next, { x: event.clientX - left, y: event.clientY - top });
}

function onKey(event: KeyboardEvent, element: HTMLDivElement | null, commands: Record<string, () => void>): void {
  if (element === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const pan = event.shiftKey ? panOf(event.key) : undefined;
  const command =
    pan === undefined ? commands[event.key] : () => element.scrollBy({ left: pan[0] * 80, top: pan[1] * 80 });
  if (command === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  command();
}

function panOf(key: string): readonly [number, number] | undefined {
  return ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as const)[key as 'ArrowLeft'];
}

function beginDrag(event: PointerEvent): void {
  const element = event.currentTarget as HTMLDivElement;
  if (event.button !== 0 || event.pointerType !== 'mouse') return;
  let { clientX, clientY } = event;
  const move = (next: PointerEvent): void => {
    element.scrollBy({ left: clientX - next.clientX, top: clientY - next.clientY, behavior: 'instant' });
    ({ clientX, clientY } = next);
    element.classList.add('dragging');
  };
  const end = (): void => {
    element.removeEventListener('pointermove', move);
    element.classList.remove('dragging');
  };
  element.setPointerCapture(event.pointerId);
  element.addEventListener('pointermove', move);
  for (const over of ['pointerup', 'pointercancel']) element.addEventListener(over, end, { once: true });
}

function sizeOf({ clientWidth, clientHeight }: HTMLElement): { width: number; height: number } {
  return { width: clientWidth - 24, height: clientHeight - 24 };
}

function reducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
