import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Finding, Weight } from '../../src/debugger/findings/finding.ts';
import { spentText } from '../../src/debugger/findings/format-findings.ts';
import { jumpTo, range, recording } from '../model/place.ts';
import { clockText, wallClockText } from '../model/recording/words.ts';
import { Icon } from '../parts/icon.tsx';
import { zoomTo } from '../timeline/timeline-view.ts';
import { chosenFinding, currentFinding, findings } from './current-finding.ts';

const isListOpen = signal(false);
/** Always includes the first and the last finding. */
const maxListed = 500;

const weights: Readonly<Record<Weight, string>> = { bad: 'Problem', note: 'Note', fine: 'OK' };

export function FindingBar(): JSX.Element | null {
  const allFindings = findings.value;
  if (allFindings.length === 0) return null;
  const currentIndex = currentFinding.value;
  const finding = allFindings[currentIndex];
  return (
    <section class="finding-bar" aria-label="Findings">
      <span class="buttons">
        <StepButton by={-1} at={currentIndex} />
        <StepButton by={1} at={currentIndex} />
      </span>
      {finding === undefined ? (
        <p class="current-finding muted">No findings before this record.</p>
      ) : (
        <p class="current-finding" data-weight={finding.weight} data-rule={finding.rule}>
          <WeightSign weight={finding.weight} />
          <FindingTime finding={finding} />
          <button type="button" class="link" title={finding.sentence} onClick={() => show(finding)}>
            {finding.sentence}
          </button>
          <SpentTimes finding={finding} />
        </p>
      )}
      {finding?.root !== undefined && finding.root !== finding.index && (
        <button type="button" onClick={() => showRoot(finding)}>
          Root cause
        </button>
      )}
      <AllFindings all={allFindings} at={currentIndex} />
    </section>
  );
}

function StepButton({ by: step, at }: { readonly by: 1 | -1; readonly at: number }): JSX.Element {
  const nextFinding = findings.value[at + step];
  const label = step === 1 ? 'Next finding' : 'Previous finding';
  return (
    <button
      type="button"
      class="quiet"
      aria-label={label}
      title={label}
      disabled={nextFinding === undefined}
      onClick={() => nextFinding !== undefined && show(nextFinding)}
    >
      <Icon name={step === 1 ? 'forward' : 'back'} />
    </button>
  );
}

function WeightSign({ weight }: { readonly weight: Weight }): JSX.Element {
  return (
    <span class="finding-sign" data-weight={weight} role="img" aria-label={weights[weight]}>
      {{ bad: '✕', note: '•', fine: '✓' }[weight]}
    </span>
  );
}

function FindingTime({ finding: { index } }: { readonly finding: Finding }): JSX.Element {
  const openRecording = recording.value!;
  const t = openRecording.timeAt(index);
  return (
    <time class="muted" title={clockText(t)}>
      {wallClockText(openRecording.header.startedAt, t).replace(/\.\d+$/, '')}
    </time>
  );
}

function SpentTimes({ finding: { spent = [] } }: { readonly finding: Finding }): JSX.Element | null {
  return spent.length === 0 ? null : (
    <span class="spent muted" title={`Time spent: ${spentText(spent)}`}>
      <span class="spent-text">{spentText(spent)}</span>
    </span>
  );
}

function AllFindings({
  all: listedFindings,
  at,
}: {
  readonly all: readonly Finding[];
  readonly at: number;
}): JSX.Element {
  const problemCount = listedFindings.filter(({ weight }) => weight === 'bad').length;
  const firstShown = Math.max(0, Math.min(at - maxListed / 2, listedFindings.length - maxListed));
  return (
    <details
      class="all-findings"
      open={isListOpen.value}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isListOpen.value) return;
        event.stopPropagation();
        isListOpen.value = false;
        event.currentTarget.querySelector('summary')?.focus();
      }}
      onToggle={({ currentTarget }) => {
        isListOpen.value = currentTarget.open;
      }}
    >
      <summary>
        {listedFindings.length} {listedFindings.length === 1 ? 'finding' : 'findings'}
        {problemCount > 0 && (
          <span class="bad-count">
            , {problemCount} {problemCount === 1 ? 'problem' : 'problems'}
          </span>
        )}
      </summary>
      {isListOpen.value && (
        <ol class="popup">
          {firstShown > 0 && <li class="muted">{firstShown} earlier</li>}
          {listedFindings.slice(firstShown, firstShown + maxListed).map((finding, i) => (
            <li key={`${finding.rule} ${finding.index}`}>
              <button
                type="button"
                class="record-link"
                aria-current={firstShown + i === at}
                data-record={recording.value!.seqAt(finding.index)}
                onClick={() => {
                  isListOpen.value = false;
                  show(finding);
                }}
              >
                <WeightSign weight={finding.weight} />
                <FindingTime finding={finding} />
                <span class="words">{finding.sentence}</span>
              </button>
            </li>
          ))}
          {firstShown + maxListed < listedFindings.length && (
            <li class="muted">{listedFindings.length - firstShown - maxListed} later</li>
          )}
        </ol>
      )}
    </details>
  );
}

/** The finding stays selected, although other findings may be nearer. */
function showRoot({ rule, index, root }: Finding): void {
  jumpTo(root!);
  chosenFinding.value = { rule, index, from: root! };
}

function show({ rule, index, range: [first, last] }: Finding): void {
  const openRecording = recording.value;
  if (openRecording === undefined) return;
  chosenFinding.value = { rule, index, from: index };
  range.value = first < last ? [first, last] : undefined;
  jumpTo(index);
  const from = openRecording.timeAt(first);
  const to = openRecording.timeAt(last);
  const marginMs = Math.max((to - from) * 0.15, 50);
  if (to > from) zoomTo(from - marginMs, to + marginMs);
}
