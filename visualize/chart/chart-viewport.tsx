import type { ReadonlySignal, Signal } from '@preact/signals';
import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { causalChain, chainAnchor } from '../model/causal-chain.ts';
import { currentTime, place, recording } from '../model/place.ts';
import {
  boundingBoxOf,
  initialScale,
  readableScale,
  scaleToFit,
  scrollToKeep,
  scrollToShow,
  zoomScale,
} from './chart-camera.ts';
import { currentTransitions, definitionOf, shownActor, shownSnapshot } from './chart-current.ts';
import { isOpenedByUser, showsCompleteCharts, toggleCompleteCharts, toggleState } from './chart-folding.ts';
import { activeLeaves, activeStates, countdownsAt } from './chart-lights.ts';
import { Minimap, type VisiblePart } from './chart-minimap.tsx';
import { pictureOf } from './chart-picture.ts';
import { ChartScene } from './chart-scene.ts';
import { goToState, useNamedStates } from './chart-states.ts';
import { hasStepped, type TakenTransitions } from './chart-steps.ts';

const zoomStep = 1.2;
const viewportMargin = 24;
const maxAnimated = 40;
const minAnimationIntervalMs = 150;
const noTransitions: TakenTransitions = { currentNumbers: [], previousNumbers: [] };
type Zoom = number | 'fit' | 'readable';
const zooms = new Map<string, Zoom>();

/** Ctrl and the wheel zoom; dragging scrolls. */
export function ChartViewport({ machine, text }: { machine: string; text: string }): JSX.Element {
  const viewport = useRef<HTMLDivElement>(null);
  const scene = useMemo(() => new ChartScene(pictureOf(text)), [text]);
  const zoom = useSignal<Zoom>(zooms.get(zoomKey(machine)) ?? 'readable');
  const visiblePart = useSignal<VisiblePart>({ left: 0, top: 0, width: 0, height: 0 });
  const scale = useComputed(() => scaleOf(scene, zoom.value, visiblePart.value));
  useScene(viewport, scene, scale);
  useVisiblePart(viewport, visiblePart);
  useNamedStates(scene, machine);
  useFolding(viewport, scene, machine);
  useHighlights(viewport, scene, machine, scale, visiblePart);
  useSignalEffect(() => {
    zooms.set(zoomKey(machine), zoom.value);
  });
  const zoomTo = (nextScale: number): void => zoomAtPoint(viewport.current, zoom, scale, nextScale);
  const fitToViewport = (): void => {
    zoom.value = 'fit';
  };
  const commands: Record<string, () => void> = {
    '+': () => zoomTo(zoomScale(scale.value, zoomStep)),
    '=': () => zoomTo(zoomScale(scale.value, zoomStep)),
    '-': () => zoomTo(zoomScale(scale.value, 1 / zoomStep)),
    '0': fitToViewport,
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
        aria-label={`Chart of ${machine}; up and down arrows select a state; plus, minus, 0 and 1 zoom; Shift and arrows scroll`}
        onKeyDown={(event) => onKey(event, viewport.current, commands)}
        onPointerDown={beginDrag}
        onWheel={(event) => onWheel(event, viewport.current, zoom, scale)}
      />
      <div class="chart-foot">
        <Minimap
          machine={machine}
          picture={scene.picture}
          scale={scale.value}
          shownPart={visiblePart}
          goTo={(left, top) => viewport.current?.scrollTo({ left, top, behavior: 'instant' })}
        />
        <fieldset class="chart-zoom" aria-label="Zoom">
          <button
            type="button"
            title="Show guards, actions and descriptions of all states, instead of names and arrows with inactive states collapsed"
            aria-pressed={showsCompleteCharts.value}
            onClick={toggleCompleteCharts}
          >
            Details
          </button>
          <button type="button" title="Zoom out (−)" aria-label="Zoom out" onClick={commands['-']}>
            −
          </button>
          <button
            type="button"
            title="Actual size (1)"
            aria-label={`${Math.round(scale.value * 100)} %: zoom to actual size`}
            class="chart-scale"
            onClick={commands['1']}
          >
            {Math.round(scale.value * 100)} %
          </button>
          <button type="button" title="Zoom in (+)" aria-label="Zoom in" onClick={commands['+']}>
            +
          </button>
          <button type="button" title="Fit the whole chart (0)" onClick={fitToViewport}>
            Fit
          </button>
        </fieldset>
      </div>
    </div>
  );
}

type Viewport = { readonly current: HTMLDivElement | null };

type Scale = ReadonlySignal<number>;

/** Brief and complete pictures have separate zoom settings. */
function zoomKey(machine: string): string {
  return `${machine} ${showsCompleteCharts.peek()}`;
}

function scaleOf({ picture }: ChartScene, zoom: Zoom, { width, height }: VisiblePart): number {
  if (typeof zoom === 'number') return zoom;
  const availableSize = { width: width - viewportMargin, height: height - viewportMargin };
  if (width === 0) return 1;
  if (zoom === 'fit') return scaleToFit(picture, availableSize);
  return showsCompleteCharts.value ? initialScale(picture, availableSize) : readableScale(picture, availableSize);
}

function useScene(viewport: Viewport, scene: ChartScene, scale: Scale): void {
  useLayoutEffect(() => {
    viewport.current!.replaceChildren(scene.svg);
    return () => scene.svg.remove();
  }, [scene, viewport]);
  useLayoutEffect(() => applyScale(scene, scale.value), [scene, scale.value]);
}

function useVisiblePart(viewport: Viewport, visiblePart: Signal<VisiblePart>): void {
  useLayoutEffect(() => {
    const element = viewport.current!;
    const updateVisiblePart = (): void => {
      const { scrollLeft: left, scrollTop: top, clientWidth: width, clientHeight: height } = element;
      const previousPart = visiblePart.peek();
      if (
        left !== previousPart.left ||
        top !== previousPart.top ||
        width !== previousPart.width ||
        height !== previousPart.height
      )
        visiblePart.value = { left, top, width, height };
    };
    const observer = new ResizeObserver(updateVisiblePart);
    observer.observe(element);
    element.addEventListener('scroll', updateVisiblePart, { passive: true });
    updateVisiblePart();
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', updateVisiblePart);
    };
  }, [viewport]);
}

function useFolding(viewport: Viewport, scene: ChartScene, machine: string): void {
  useLayoutEffect(() => {
    for (const state of scene.foldableGroups((number) => isOpenedByUser(machine, number))) {
      const isFolded = state.classList.contains('folded');
      const name = state.dataset.path === '' ? machine : state.dataset.path;
      state.setAttribute('tabindex', '0');
      state.setAttribute('role', 'button');
      state.setAttribute('aria-expanded', String(!isFolded));
      state.setAttribute('aria-label', `${isFolded ? 'Open' : 'Fold'} ${name}`);
      state.classList.add('foldable');
    }
    const toggle = (event: Event): void => {
      const state = (event.target as Element).closest<SVGGElement>('.foldable');
      if (state === null || (event instanceof KeyboardEvent && event.key !== 'Enter' && event.key !== ' ')) return;
      event.preventDefault();
      event.stopPropagation();
      const number = state.dataset.state;
      toggleState(machine, number === undefined ? undefined : Number(number));
    };
    const element = viewport.current!;
    element.addEventListener('click', toggle);
    element.addEventListener('keydown', toggle);
    return () => {
      element.removeEventListener('click', toggle);
      element.removeEventListener('keydown', toggle);
    };
  }, [scene, machine]);
}

function useHighlights(
  viewport: Viewport,
  scene: ChartScene,
  machine: string,
  scale: Scale,
  visiblePart: Signal<VisiblePart>,
): void {
  const lastShown = useRef({ place: -1, leaves: '', at: 0 });
  // Scrolling to the active state requires the measured size.
  const hasSize = useComputed(() => visiblePart.value.width > 0);
  useSignalEffect(() => {
    const currentIndex = place.value;
    const snapshot = shownSnapshot.value;
    const chart = definitionOf(machine);
    if (chart === undefined) return;
    const takenTransitions = snapshot === undefined ? noTransitions : currentTransitions(snapshot);
    scene.highlight(activeStates(chart, snapshot?.state ?? ''), takenTransitions);
    const forward = currentIndex - lastShown.current.place;
    const isAnimationAllowed = performance.now() - lastShown.current.at > minAnimationIntervalMs;
    if (snapshot !== undefined && forward > 0 && forward <= maxAnimated && isAnimationAllowed && !reducedMotion()) {
      if (hasSteppedSince(snapshot, lastShown.current.place))
        scene.animate(
          takenTransitions.currentNumbers.length > 0
            ? takenTransitions.currentNumbers
            : takenTransitions.previousNumbers,
        );
    }
    const leaves = `${shownActor.value} ${snapshot?.state} ${hasSize.value}`;
    if (leaves !== lastShown.current.leaves) {
      applyScale(scene, scale.peek());
      showActive(viewport.current, scene, activeLeaves(chart, snapshot?.state ?? ''), scale.peek());
    }
    lastShown.current = { place: currentIndex, leaves, at: performance.now() };
  });
  useSignalEffect(() => scene.markChain(chainTransitions(shownActor.value)));
  useSignalEffect(() => {
    const chart = definitionOf(machine);
    const timers = shownSnapshot.value?.timers ?? [];
    if (chart !== undefined)
      scene.showCountdowns(timers.length === 0 ? [] : countdownsAt(chart, timers, currentTime.value));
  });
  // Ignores steps that an earlier scene of this machine animated.
  useLayoutEffect(() => {
    const chart = definitionOf(machine);
    const snapshot = shownSnapshot.peek();
    lastShown.current = { ...lastShown.current, place: place.peek() };
    if (chart === undefined) return;
    scene.highlight(
      activeStates(chart, snapshot?.state ?? ''),
      snapshot === undefined ? noTransitions : currentTransitions(snapshot),
    );
    showActive(viewport.current, scene, activeLeaves(chart, snapshot?.state ?? ''), scale.peek());
  }, [scene]);
}

function chainTransitions(actor: string | undefined): number[] {
  const openRecording = recording.value;
  if (chainAnchor.value === undefined) return [];
  return (causalChain.value?.indexes ?? []).flatMap((index) => {
    const record = openRecording?.recordAt(index);
    const isStepRecord = record?.kind === 'transition' || record?.kind === 'step';
    return isStepRecord && record.actor === actor ? (record.taken ?? []) : [];
  });
}

function hasSteppedSince({ actor }: ActorSnapshot, previousPlace: number): boolean {
  const openRecording = recording.peek();
  return openRecording !== undefined && hasStepped(openRecording, actor, previousPlace, place.peek());
}

function showActive(element: HTMLDivElement | null, scene: ChartScene, leaves: readonly number[], scale: number): void {
  const box = boundingBoxOf(leaves.flatMap((number) => scene.picture.boxes.get(number) ?? []));
  if (element === null || box === undefined) return;
  const { scrollLeft, scrollTop, clientWidth, clientHeight } = element;
  const scrollTarget = scrollToShow({ from: box.x, length: box.width }, scale, scrollLeft, clientWidth);
  const top = scrollToShow({ from: box.y, length: box.height }, scale, scrollTop, clientHeight);
  if (scrollTarget === undefined && top === undefined) return;
  element.scrollTo({
    left: scrollTarget ?? scrollLeft,
    top: top ?? scrollTop,
    behavior: reducedMotion() ? 'instant' : 'smooth',
  });
}

function applyScale({ svg, picture }: ChartScene, scale: number): void {
  svg.setAttribute('width', String(picture.width * scale));
  svg.setAttribute('height', String(picture.height * scale));
}

function zoomAtPoint(
  element: HTMLDivElement | null,
  zoom: Signal<Zoom>,
  scale: Scale,
  nextScale: number,
  anchor?: { readonly x: number; readonly y: number },
): void {
  if (element === null) return;
  const { scrollLeft, scrollTop, clientWidth, clientHeight } = element;
  const previousScale = scale.peek();
  const { x, y } = anchor ?? { x: clientWidth / 2, y: clientHeight / 2 };
  zoom.value = nextScale;
  // Sets the size now instead of in the next frame, because scrolling needs it.
  element
    .querySelector('svg')
    ?.setAttribute('width', String((element.querySelector('svg')!.clientWidth / previousScale) * nextScale));
  element.scrollLeft = scrollToKeep(scrollLeft, x, previousScale, nextScale);
  element.scrollTop = scrollToKeep(scrollTop, y, previousScale, nextScale);
}

function onWheel(event: WheelEvent, element: HTMLDivElement | null, zoom: Signal<Zoom>, scale: Scale): void {
  if (element === null || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  const { left, top } = element.getBoundingClientRect();
  const next = zoomScale(scale.peek(), Math.exp(-event.deltaY / 300));
  zoomAtPoint(element, zoom, scale, next, { x: event.clientX - left, y: event.clientY - top });
}

function onKey(event: KeyboardEvent, element: HTMLDivElement | null, commands: Record<string, () => void>): void {
  if (element === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const pan = event.shiftKey ? panDirectionOf(event.key) : undefined;
  const command =
    pan === undefined ? commands[event.key] : () => element.scrollBy({ left: pan[0] * 80, top: pan[1] * 80 });
  const isStateShown = command === undefined && !event.shiftKey && goToState(element, event.key);
  if (command === undefined && !isStateShown) return;
  event.preventDefault();
  event.stopPropagation();
  command?.();
}

function panDirectionOf(key: string): readonly [number, number] | undefined {
  return ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as const)[key as 'ArrowLeft'];
}

function beginDrag(event: PointerEvent): void {
  const element = event.currentTarget as HTMLDivElement;
  if (event.button !== 0 || event.pointerType !== 'mouse') return;
  let { clientX, clientY } = event;
  const onMove = (moveEvent: PointerEvent): void => {
    // A press without movement is a click on the element below.
    if (!element.hasPointerCapture(moveEvent.pointerId)) element.setPointerCapture(moveEvent.pointerId);
    element.scrollBy({ left: clientX - moveEvent.clientX, top: clientY - moveEvent.clientY, behavior: 'instant' });
    ({ clientX, clientY } = moveEvent);
    element.classList.add('dragging');
  };
  const onEnd = (): void => {
    element.removeEventListener('pointermove', onMove);
    element.classList.remove('dragging');
  };
  element.addEventListener('pointermove', onMove);
  for (const endEvent of ['pointerup', 'pointercancel']) element.addEventListener(endEvent, onEnd, { once: true });
}

function reducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
