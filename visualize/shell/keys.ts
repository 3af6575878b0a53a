import { signal } from '@preact/signals';
import { stepAlongCause } from '../model/causal-chain.ts';
import { goToMark, toggleMark } from '../model/marks.ts';
import { storedValue, storeValue } from '../model/page-storage.ts';
import { goTo, place } from '../model/place.ts';
import { togglePlaying } from '../model/playing.ts';
import { showAllPanes } from '../parts/large-button.tsx';
import { goToDeviation, goToEnd, stepOfActor, stepRecord } from '../parts/steps.ts';
import { focusSearch } from '../search/searching.ts';
import { rangeOfChoice, showChoice } from '../timeline/timeline-choice.ts';
import { setRangeEnd } from '../timeline/timeline-place.ts';
import { fitView, panByShare, zoomAtPointer } from '../timeline/timeline-view.ts';
import { isHelpOpen, openHelp } from './help-dialog.ts';

interface Key {
  /** `KeyboardEvent.key` of the keyboard layout; letters in lower case. */
  readonly key?: string;
  /** `KeyboardEvent.code`: the position on the keyboard, whatever the layout. */
  readonly code?: string;
  readonly modifier?: 'shift' | 'jump';
  readonly act: () => void;
}

export interface Command {
  readonly id: string;
  readonly description: string;
  readonly keyLabels: readonly string[];
  readonly keys: readonly Key[];
  /** Dictation software may type character keys, so WCAG 2.1.4 requires an option to turn them off. */
  readonly isCharacter?: boolean;
}

export const commands: readonly Command[] = [
  {
    id: 'step',
    description: 'Previous or next record',
    keyLabels: ['←', '→'],
    keys: [
      { key: 'ArrowLeft', act: () => stepRecord(-1) },
      { key: 'ArrowRight', act: () => stepRecord(1) },
    ],
  },
  {
    id: 'step-of-actor',
    description: 'Previous or next record of the selected actor',
    keyLabels: ['Shift + ←', 'Shift + →'],
    keys: [
      { key: 'ArrowLeft', modifier: 'shift', act: () => stepOfActor(-1) },
      { key: 'ArrowRight', modifier: 'shift', act: () => stepOfActor(1) },
    ],
  },
  {
    id: 'step-of-actor-by-character',
    description: 'Previous or next record of the selected actor',
    keyLabels: [',', '.'],
    isCharacter: true,
    keys: [
      { key: ',', act: () => stepOfActor(-1) },
      { key: '.', act: () => stepOfActor(1) },
    ],
  },
  {
    id: 'departure',
    description: 'Previous or next deviation from the sequence diagrams',
    keyLabels: ['Ctrl + ←', 'Ctrl + →'],
    keys: [
      { key: 'ArrowLeft', modifier: 'jump', act: () => goToDeviation(-1) },
      { key: 'ArrowRight', modifier: 'jump', act: () => goToDeviation(1) },
    ],
  },
  {
    id: 'ends',
    description: 'First or last record; End follows a running program',
    keyLabels: ['Home', 'End'],
    keys: [
      { key: 'Home', act: () => goTo(0) },
      { key: 'End', act: goToEnd },
    ],
  },
  {
    id: 'play',
    description: 'Play or pause at the recorded speed; long pauses are shortened',
    keyLabels: ['Space'],
    keys: [{ key: ' ', act: togglePlaying }],
  },
  {
    id: 'zoom-and-pan',
    description: 'Timeline: zoom in at the pointer, zoom out, pan left, pan right',
    keyLabels: ['W', 'S', 'A', 'D'],
    isCharacter: true,
    keys: [
      { code: 'KeyW', act: () => zoomAtPointer(0.7) },
      { code: 'KeyS', act: () => zoomAtPointer(1 / 0.7) },
      { code: 'KeyA', act: () => panByShare(-0.15) },
      { code: 'KeyD', act: () => panByShare(0.15) },
    ],
  },
  {
    id: 'zoom',
    description: 'Timeline: zoom in, zoom out, show all',
    keyLabels: ['+', '−', '0'],
    isCharacter: true,
    keys: [
      { key: '+', act: () => zoomAtPointer(0.5) },
      { key: '=', act: () => zoomAtPointer(0.5) },
      { key: '-', act: () => zoomAtPointer(2) },
      { key: '0', act: fitView },
    ],
  },
  {
    id: 'show-choice',
    description: 'Center the selection on the timeline; press again to zoom to it',
    keyLabels: ['F'],
    isCharacter: true,
    keys: [{ key: 'f', act: showChoice }],
  },
  {
    id: 'range-of-choice',
    description: 'Select the time of the current state of the selected actor as range',
    keyLabels: ['R'],
    isCharacter: true,
    keys: [{ key: 'r', act: rangeOfChoice }],
  },
  {
    id: 'range-ends',
    description: 'Set the start or end of the range',
    keyLabels: ['I', 'O'],
    isCharacter: true,
    keys: [
      { key: 'i', act: () => setRangeEnd('first', place.value) },
      { key: 'o', act: () => setRangeEnd('last', place.value) },
    ],
  },
  {
    id: 'mark',
    description: 'Mark or unmark this record; go to the next mark. Links and exported pages keep marks',
    keyLabels: ['M', 'Shift + M'],
    isCharacter: true,
    keys: [
      { key: 'm', act: () => toggleMark(place.value) },
      { key: 'm', modifier: 'shift', act: goToMark },
    ],
  },
  {
    id: 'along-cause',
    description: 'Go to the cause or to the consequence of this record',
    keyLabels: ['[', ']'],
    isCharacter: true,
    keys: [
      { key: '[', act: () => stepAlongCause(-1) },
      { key: ']', act: () => stepAlongCause(1) },
    ],
  },
  {
    id: 'all-panes',
    description: 'Show all panes after one was maximized',
    keyLabels: ['Esc'],
    keys: [{ key: 'Escape', act: showAllPanes }],
  },
  { id: 'search', description: 'Search', keyLabels: ['/'], isCharacter: true, keys: [{ key: '/', act: focusSearch }] },
  { id: 'help', description: 'This help', keyLabels: ['?'], isCharacter: true, keys: [{ key: '?', act: openHelp }] },
];

export const characterKeys = signal(storedValue('character-keys') !== 'off');

export function switchCharacterKeys(isEnabled: boolean): void {
  characterKeys.value = isEnabled;
  storeValue('character-keys', isEnabled ? 'on' : 'off');
}

export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.metaKey || isTyping(event.target) || isHelpOpen()) return;
  // The browser uses Alt and the arrow keys for back and forward.
  if (event.altKey) return;
  const shortcut = keyOf(event);
  if (shortcut === undefined) return;
  // The space bar presses the focused button, as usual.
  if (
    event.key === ' ' &&
    event.target instanceof Element &&
    event.target.closest('button, summary, select, a, input[type=checkbox]') !== null
  )
    return;
  event.preventDefault();
  shortcut.act();
}

function keyOf({ key, code, ctrlKey, shiftKey }: KeyboardEvent): Key | undefined {
  const normalizedKey = key.length === 1 ? key.toLowerCase() : key;
  // A character that needs Shift on some keyboards (`?`, `+`) matches with and without it.
  const hasShiftModifier = shiftKey && (key.length > 1 || normalizedKey !== key);
  const modifier = ctrlKey ? 'jump' : hasShiftModifier ? 'shift' : undefined;
  const enabledCommands = commands.filter(({ isCharacter = false }) => characterKeys.value || !isCharacter);
  const matchingBindings = enabledCommands
    .flatMap(({ keys }) => keys)
    .filter((keyBinding) => keyBinding.modifier === modifier);
  // Positions have priority over letters, so that the four position keys stay adjacent on every keyboard layout.
  return (
    matchingBindings.find((keyBinding) => keyBinding.code === code && keyBinding.code !== undefined) ??
    matchingBindings.find((keyBinding) => keyBinding.key === normalizedKey)
  );
}

/** The slider is not a text field, so the page handles its keys. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== 'range' && target.type !== 'checkbox';
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
