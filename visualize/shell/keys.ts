/** What each key does; the help lists the same table. */
import { goTo, place } from '../model/place.ts';
import { togglePlaying } from '../model/playing.ts';
import { goToDeparture, goToEnd, step, stepOfActor } from '../parts/steps.ts';
import { focusSearch } from '../search/searching.ts';
import { setRangeEnd } from '../timeline/timeline-place.ts';
import { fit, zoomBy } from '../timeline/timeline-view.ts';
import { isHelpOpen, openHelp } from './help.tsx';

interface Key {
  readonly keys: readonly string[];
  readonly modifier?: 'shift' | 'jump';
  readonly act: () => void;
}

const table: readonly Key[] = [
  { keys: ['ArrowRight'], act: () => step(1) },
  { keys: ['ArrowLeft'], act: () => step(-1) },
  { keys: ['ArrowRight'], modifier: 'shift', act: () => stepOfActor(1) },
  { keys: ['ArrowLeft'], modifier: 'shift', act: () => stepOfActor(-1) },
  { keys: ['ArrowRight'], modifier: 'jump', act: () => goToDeparture(1) },
  { keys: ['ArrowLeft'], modifier: 'jump', act: () => goToDeparture(-1) },
  { keys: ['Home'], act: () => goTo(0) },
  { keys: ['End'], act: goToEnd },
  { keys: [' '], act: togglePlaying },
  { keys: ['/'], act: focusSearch },
  { keys: ['?'], act: openHelp },
  { keys: ['['], act: () => setRangeEnd('first', place.value) },
  { keys: [']'], act: () => setRangeEnd('last', place.value) },
  { keys: ['+', '='], act: () => zoomBy(0.5) },
  { keys: ['-'], act: () => zoomBy(2) },
  { keys: ['0'], act: fit },
];

/** To be given every key of the page. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.metaKey || isTyping(event.target) || isHelpOpen()) return;
  // With Alt the arrows are the browser's: back and forward.
  if (event.altKey) return;
  const modifier = event.ctrlKey ? 'jump' : event.shiftKey && event.key.startsWith('Arrow') ? 'shift' : undefined;
  const found = table.find(({ keys, modifier: wanted }) => keys.includes(event.key) && wanted === modifier);
  if (found === undefined) return;
  // A button that has the focus is pressed with the space bar, as everywhere.
  if (
    event.key === ' ' &&
    event.target instanceof Element &&
    event.target.closest('button, summary, select, a') !== null
  )
    return;
  event.preventDefault();
  found.act();
}

/** The slider is no text: its keys are ours. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== 'range';
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
