import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { chosenActor, place, recording, size } from '../model/place.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { LargeButton } from '../parts/large-button.tsx';
import { goToDeviation } from '../parts/steps.ts';
import { foldsEffects, showsInternal, showsOnlyChosen, showsStates } from './sequence-current.ts';

export function SequenceTools(): JSX.Element {
  return (
    <div class="sequence-tools" role="toolbar" aria-label="Message filters">
      <label>
        Messages{' '}
        <select
          value={showsOnlyChosen.value ? 'chosen' : 'all'}
          onChange={(event) => {
            showsOnlyChosen.value = event.currentTarget.value === 'chosen';
          }}
        >
          <option value="all">of all actors</option>
          <option value="chosen" disabled={chosenActor.value === undefined}>
            of {chosenActor.value ?? 'the selected actor'}
          </option>
        </select>
      </label>
      <LabeledCheckbox of={showsStates} title="Show the state changes and named actions that messages cause">
        states
      </LabeledCheckbox>
      <LabeledCheckbox
        of={foldsEffects}
        title="Draw effects (promises, callbacks, observables) on the lifeline of their parent"
      >
        merge effects
      </LabeledCheckbox>
      <LabeledCheckbox of={showsInternal} title="Show events that XState generates, such as xstate.done.actor.…">
        XState internals
      </LabeledCheckbox>
      <DeviationButtons />
      <LargeButton pane="sequence" />
    </div>
  );
}

function LabeledCheckbox({
  of,
  title,
  children,
}: {
  of: Signal<boolean>;
  title: string;
  children: string;
}): JSX.Element {
  return (
    <label title={title}>
      <input
        type="checkbox"
        checked={of.value}
        onChange={(event) => {
          of.value = event.currentTarget.checked;
        }}
      />{' '}
      {children}
    </label>
  );
}

function DeviationButtons(): JSX.Element | null {
  const openRecording = recording.value;
  if (openRecording === undefined || openRecording.diagrams.length === 0 || size.value < 0) return null;
  const { deviations } = openRecording;
  if (deviations.length === 0) {
    return (
      <span class="sequence-result" title={notCheckedText(openRecording.notChecked)}>
        ✓ matches the diagrams
        {openRecording.notChecked.length > 0 && ` (${openRecording.notChecked.length} not checked)`}
      </span>
    );
  }
  const currentIndex = deviations.filter(({ index }) => index <= place.value).length;
  return (
    <span class="sequence-result departs" role="status">
      <button
        type="button"
        aria-label="Previous deviation"
        title="Previous deviation"
        onClick={() => goToDeviation(-1)}
      >
        ▲
      </button>
      <span>
        ⚠ {deviations.length === 1 ? '1 deviation' : `${deviations.length} deviations`}
        {currentIndex > 0 && deviations.length > 1 && `, current: ${currentIndex}`}
      </span>
      <button type="button" aria-label="Next deviation" title="Next deviation" onClick={() => goToDeviation(1)}>
        ▼
      </button>
    </span>
  );
}

function notCheckedText(notChecked: PageRecording['notChecked']): string | undefined {
  if (notChecked.length === 0) return undefined;
  return notChecked
    .map(({ file, omitted }) => `${file} is not checked: the trace omits ${omitted.join(', ')}`)
    .join('\n');
}
