/** What part of the timeline is shown, and how wide it is drawn. */
import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { connection } from '../model/connection.ts';
import { place, recording, size } from '../model/place.ts';
import { foldsOf } from '../model/recording/idle-time.ts';
import { fitting, moved, showing, type View, zoomed } from '../model/time/axis.ts';
import { programTime } from '../model/time/program-clock.ts';
import { foldedClock, TimeAxis } from '../model/time/time-axis.ts';

/** Pixels of the part where time runs. */
export const width = signal(800);

/** What was zoomed to; everything when undefined. */
const zoom = signal<View | undefined>(undefined);

/** Of a live program: how far its time had gone when the timeline was drawn last. */
const reached = signal(0);
const tickMs = 1_000;

/** Time of the last record; of a live program its own time, which goes on while it tells nothing. */
export const end = computed(() => {
  const last = size.value > 0 ? (recording.value?.timeAt(size.value - 1) ?? 0) : 0;
  return connection.value.kind === 'live' ? Math.max(last, reached.value) : last;
});

/** Whether idle times are folded; those that somebody opened are not, by their beginnings. */
const foldsIdle = signal(true);
const opened = signal<ReadonlySet<number>>(new Set());

/** All that could be folded, whether it is or not. */
const foldable = computed(() => {
  const begin = recording.value?.timeAt(0) ?? 0;
  const idle = size.value > 0 ? (recording.value?.idle.until(end.value) ?? []) : [];
  return foldsOf(idle, { from: begin, to: end.value }, width.value);
});

export const hasIdle = computed(() => foldable.value.folds.length > 0);

/** The trace's clock, its idle times cut short. The view is a part of it. */
const clock = computed(() => {
  const { folds, pixels } = foldable.value;
  const folded = foldsIdle.value ? folds.filter(({ from }) => !opened.value.has(from)) : [];
  return foldedClock(folded, pixels, { from: recording.value?.timeAt(0) ?? 0, to: end.value }, width.value);
});

const whole = computed<View>(() =>
  fitting(clock.value.shown(recording.value?.timeAt(0) ?? 0), clock.value.shown(end.value)),
);

export const view = computed<View>(() => zoom.value ?? whole.value);

/** What is shown of it, as it lies on the screen. */
export const axis = computed(() => new TimeAxis(clock.value, view.value, width.value));

export const isZoomed = computed(() => zoom.value !== undefined);

export function zoomBy(factor: number, at = (view.value.from + view.value.to) / 2): void {
  set(zoomed(view.value, at, factor, whole.value));
}

export function pan(by: number): void {
  if (zoom.value !== undefined) set(moved(view.value, by, whole.value));
}

/** Shows what happened between two times of the trace. */
export function zoomTo(from: number, to: number): void {
  const next = { from: clock.value.shown(from), to: clock.value.shown(to) };
  set(zoomed(next, (next.from + next.to) / 2, 1, whole.value));
}

/** Zooms with the time under a point of the screen staying there. */
export function zoomAt(x: number, factor: number): void {
  const { from, to } = view.value;
  zoomBy(factor, from + (x / width.value) * (to - from));
}

/** Where the mouse is over the timeline, in pixels; undefined where it is not. */
export const pointerX = signal<number | undefined>(undefined);

/** Zooms with what is under the pointer staying there; else the place, if it is seen; else the middle. */
export function zoomAtPointer(factor: number): void {
  const here = xOf(recording.value?.timeAt(place.value) ?? 0);
  const isSeen = here >= 0 && here <= width.value;
  zoomAt(pointerX.value ?? (isSeen ? here : width.value / 2), factor);
}

/** Goes so much of what is shown to the right; to the left when it is negative. */
export function panByShare(share: number): void {
  pan((view.value.to - view.value.from) * share);
}

/** Brings a time of the trace to the middle. */
export function centre(t: number): void {
  pan(clock.value.shown(t) - (view.value.from + view.value.to) / 2);
}

/** Opens the fold that begins at a time. */
export function unfold(from: number): void {
  keepingView(() => {
    opened.value = new Set([...opened.value, from]);
  });
}

/** Folds all idle times, or opens all. */
export function toggleIdle(): void {
  keepingView(() => {
    const isAll = foldsIdle.value && opened.value.size === 0;
    foldsIdle.value = !isAll;
    opened.value = new Set();
  });
}

/** Whether every idle time is folded. */
export const foldsAll = computed(() => foldsIdle.value && opened.value.size === 0);

/** What is in view stays there while the clock becomes another. */
function keepingView(change: () => void): void {
  const { from, to } = axis.peek();
  const wasZoomed = isZoomed.peek();
  batch(() => {
    change();
    if (wasZoomed) zoomTo(from, to);
  });
}

export function fit(): void {
  zoom.value = undefined;
}

export function timeOf(x: number): number {
  return axis.value.timeOf(x);
}

export function xOf(t: number): number {
  return axis.value.xOf(t);
}

/** From now on the place stays in view, and another trace is shown as a whole. */
export function keepInView(): void {
  effect(() => {
    recording.value;
    zoom.value = undefined;
    opened.value = new Set();
  });
  effect(() => {
    const open = recording.value;
    const shown = zoom.peek();
    if (open === undefined || shown === undefined || connection.peek().kind === 'opening') return;
    zoom.value = showing(shown, clock.peek().shown(open.timeAt(place.value)), whole.peek());
  });
}

/** From now on the timeline of a live program grows with its time. It is drawn anew when it is a pixel longer. */
export function keepGrowing(): void {
  effect(() => {
    const open = recording.value;
    reached.value = 0;
    if (connection.value.kind !== 'live') return undefined;
    const grow = (): void => {
      const now = programTime() ?? 0;
      const { from, to } = whole.peek();
      const shownEnd = untracked(() => end.value);
      const last = open?.timeAt(open.length - 1) ?? 0;
      // A fold that grows looks as before: what its words tell is exact to a part in fifty.
      const least = hasIdle.peek()
        ? Math.max((to - from) / width.peek(), (shownEnd - last) / 50)
        : (to - from) / width.peek();
      if (now - shownEnd > least) reached.value = now;
    };
    grow();
    const timer = setInterval(grow, tickMs);
    return () => clearInterval(timer);
  });
}

function set(next: View): void {
  const { from, to } = whole.value;
  zoom.value = next.to - next.from >= to - from ? undefined : next;
}
