import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { connection } from '../model/connection.ts';
import { place, recording, size } from '../model/place.ts';
import { foldsOf } from '../model/recording/idle-time.ts';
import { completeView, shiftedView, type View, viewIncluding, zoomView } from '../model/time/axis.ts';
import { programTime } from '../model/time/program-clock.ts';
import { foldedClock, TimeAxis } from '../model/time/time-axis.ts';

export const width = signal(800);

/** `undefined` for the complete trace. */
const zoom = signal<View | undefined>(undefined);

const lastDrawnTime = signal(0);
const tickMs = 1_000;

/** The current time of a live program advances without records. */
export const endTime = computed(() => {
  const lastRecordTime = size.value > 0 ? (recording.value?.timeAt(size.value - 1) ?? 0) : 0;
  return connection.value.kind === 'live' ? Math.max(lastRecordTime, lastDrawnTime.value) : lastRecordTime;
});

/** Whether idle times are folded, except those that the user opened. */
const areIdleTimesFolded = signal(true);
const openedFolds = signal<ReadonlySet<number>>(new Set());

const foldableIdleTimes = computed(() => {
  const startTime = recording.value?.timeAt(0) ?? 0;
  const idle = size.value > 0 ? (recording.value?.idleTimes.idleTimesUntil(endTime.value) ?? []) : [];
  return foldsOf(idle, { from: startTime, to: endTime.value }, width.value);
});

export const hasIdle = computed(() => foldableIdleTimes.value.folds.length > 0);

/** The view is a range of this clock. */
const clock = computed(() => {
  const { folds, pixels } = foldableIdleTimes.value;
  const foldedIdleTimes = areIdleTimesFolded.value ? folds.filter(({ from }) => !openedFolds.value.has(from)) : [];
  return foldedClock(
    foldedIdleTimes,
    pixels,
    { from: recording.value?.timeAt(0) ?? 0, to: endTime.value },
    width.value,
  );
});

const wholeView = computed<View>(() =>
  completeView(clock.value.toShownTime(recording.value?.timeAt(0) ?? 0), clock.value.toShownTime(endTime.value)),
);

export const view = computed<View>(() => zoom.value ?? wholeView.value);

export const axis = computed(() => new TimeAxis(clock.value, view.value, width.value));

export const isZoomedIn = computed(() => zoom.value !== undefined);

export function zoomBy(factor: number, centre = (view.value.from + view.value.to) / 2): void {
  setView(zoomView(view.value, centre, factor, wholeView.value));
}

export function pan(offsetMs: number): void {
  if (zoom.value !== undefined) setView(shiftedView(view.value, offsetMs, wholeView.value));
}

export function zoomTo(from: number, to: number): void {
  const nextView = { from: clock.value.toShownTime(from), to: clock.value.toShownTime(to) };
  setView(zoomView(nextView, (nextView.from + nextView.to) / 2, 1, wholeView.value));
}

/** The time at position `x` stays in place. */
export function zoomAt(x: number, factor: number): void {
  const { from, to } = view.value;
  zoomBy(factor, from + (x / width.value) * (to - from));
}

/** `undefined` if the pointer is not over the timeline. */
export const pointerX = signal<number | undefined>(undefined);

/** Zooms around the pointer, else around the current place if it is visible, else around the middle. */
export function zoomAtPointer(factor: number): void {
  const placeX = xOf(recording.value?.timeAt(place.value) ?? 0);
  const isPlaceVisible = placeX >= 0 && placeX <= width.value;
  zoomAt(pointerX.value ?? (isPlaceVisible ? placeX : width.value / 2), factor);
}

/** Moves to the left if negative. */
export function panByShare(share: number): void {
  pan((view.value.to - view.value.from) * share);
}

export function centre(t: number): void {
  pan(clock.value.toShownTime(t) - (view.value.from + view.value.to) / 2);
}

export function openFold(from: number): void {
  changeKeepingView(() => {
    openedFolds.value = new Set([...openedFolds.value, from]);
  });
}

export function toggleIdle(): void {
  changeKeepingView(() => {
    const isEverythingFolded = areIdleTimesFolded.value && openedFolds.value.size === 0;
    areIdleTimesFolded.value = !isEverythingFolded;
    openedFolds.value = new Set();
  });
}

export const areAllFolded = computed(() => areIdleTimesFolded.value && openedFolds.value.size === 0);

/** Keeps the visible times in place while the clock changes. */
function changeKeepingView(change: () => void): void {
  const { from, to } = axis.peek();
  const wasZoomed = isZoomedIn.peek();
  batch(() => {
    change();
    if (wasZoomed) zoomTo(from, to);
  });
}

export function fitView(): void {
  zoom.value = undefined;
}

export function timeOf(x: number): number {
  return axis.value.timeOf(x);
}

export function xOf(t: number): number {
  return axis.value.xOf(t);
}

/** Also resets the view for another trace. */
export function startKeepingPlaceInView(): void {
  effect(() => {
    recording.value;
    zoom.value = undefined;
    openedFolds.value = new Set();
  });
  effect(() => {
    const openRecording = recording.value;
    const shownView = zoom.peek();
    if (openRecording === undefined || shownView === undefined || connection.peek().kind === 'opening') return;
    zoom.value = viewIncluding(
      shownView,
      clock.peek().toShownTime(openRecording.timeAt(place.value)),
      wholeView.peek(),
    );
  });
}

/** The timeline is redrawn when it grows by a pixel. */
export function startGrowing(): void {
  effect(() => {
    const openRecording = recording.value;
    lastDrawnTime.value = 0;
    if (connection.value.kind !== 'live') return undefined;
    const extendView = (): void => {
      const currentProgramTime = programTime() ?? 0;
      const { from, to } = wholeView.peek();
      const shownEnd = untracked(() => endTime.value);
      const lastTime = openRecording?.timeAt(openRecording.length - 1) ?? 0;
      // Smaller growth of a fold is invisible, because its label is exact only to 2 %.
      const minGrowth = hasIdle.peek()
        ? Math.max((to - from) / width.peek(), (shownEnd - lastTime) / 50)
        : (to - from) / width.peek();
      if (currentProgramTime - shownEnd > minGrowth) lastDrawnTime.value = currentProgramTime;
    };
    extendView();
    const timer = setInterval(extendView, tickMs);
    return () => clearInterval(timer);
  });
}

function setView(next: View): void {
  const { from, to } = wholeView.value;
  zoom.value = next.to - next.from >= to - from ? undefined : next;
}
