import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type CauseKind, type CauseLink, type CauseOrigin, causeChain } from '../../src/debugger/trace/cause-chain.ts';
import { type ChainPart, foldChain } from '../../src/debugger/trace/fold-chain.ts';
import { attemptsOf, describeFailures } from '../../src/debugger/trace/retry-words.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { causalChain, chainActors, chainAnchor, toggleChain } from '../model/causal-chain.ts';
import { jumpTo } from '../model/place.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { durationText, recordText } from '../model/recording/words.ts';
import { MarkSign } from '../parts/mark-shape.tsx';
import { Column } from './column.tsx';

const initiallyListed = 30;
const maxListed = 5_000;
const origins: Readonly<Record<CauseOrigin, string>> = {
  outside: 'Sent from outside the program.',
  start: 'Start of the program.',
  lost: 'Earlier causes are not in the trace.',
  long: 'Further causes are omitted.',
};
const causeLabels: Readonly<Record<Exclude<CauseKind, 'cause'>, string>> = {
  'timer-started': 'timer started by',
  received: 'output of an effect, last event that it received:',
  spawned: 'output of an effect, started by',
  'owner-state': 'output of an effect, while its parent was in the state entered by',
  'owner-received': 'output of an effect, last event that its parent received:',
  'ended-by': 'ended after',
};

export function Causes({
  open: openRecording,
  index,
}: {
  readonly open: PageRecording;
  readonly index: number;
}): JSX.Element {
  const { links, origin } = causeChain(openRecording, index);
  const record = openRecording.recordAt(index)!;
  const consequenceIndexes = openRecording.consequencesOf(record.seq);
  return (
    <Column label="Causes" part="causes">
      <h3 class="column-head">
        Causes
        <ChainButton open={openRecording} />
      </h3>
      <ol class="chain" aria-label="Causes, nearest first">
        {foldChain(links).map((chainPart) => (
          <>
            <Links open={openRecording} links={chainPart.links} from={record.t} />
            {chainPart.times > 1 && (
              <li key={`others ${chainPart.repetitions[0]!.index}`}>
                <Fold {...foldLabel(chainPart)}>
                  {() => <Repetitions open={openRecording} part={chainPart} from={record.t} />}
                </Fold>
              </li>
            )}
          </>
        ))}
        <li class="origin">
          {origins[isEndedByProgram(openRecording, links.at(-1)?.record ?? record) ? 'outside' : origin]}
        </li>
      </ol>
      <h3 class="column-head">Consequences</h3>
      {consequenceIndexes.length === 0 ? (
        <p class="muted">None recorded.</p>
      ) : (
        <ol class="chain" aria-label="Consequences">
          <Consequences open={openRecording} led={consequenceIndexes.slice(0, initiallyListed)} from={record.t} />
          {consequenceIndexes.length > initiallyListed && (
            <li>
              <Fold label={`${consequenceIndexes.length - initiallyListed} more`}>
                {() => (
                  <Consequences
                    open={openRecording}
                    led={consequenceIndexes.slice(initiallyListed, maxListed)}
                    from={record.t}
                  />
                )}
              </Fold>
            </li>
          )}
        </ol>
      )}
    </Column>
  );
}

/** Whether no actor in the trace spawned the ended actor. */
function isEndedByProgram(openRecording: PageRecording, record: TraceRecord): boolean {
  if (record.kind !== 'stop' || record.status !== 'stopped') return false;
  const spawnIndex = openRecording.lastIndexAbout(record.actor, ['spawn'], openRecording.indexOf(record.seq) ?? 0);
  const spawn = spawnIndex === undefined ? undefined : openRecording.recordAt(spawnIndex);
  return spawn?.kind === 'spawn' && spawn.parent === undefined;
}

/** Returns text such as `9 × the same before it: SIGKILL while initializing`. */
function foldLabel(chainPart: ChainPart): { readonly label: string; readonly isBad: boolean } {
  const failureText = describeFailures(chainPart);
  const times = `${chainPart.times - 1} × the same before`;
  return { label: failureText === undefined ? times : `${times}: ${failureText}`, isBad: failureText !== undefined };
}

function Repetitions({ open, part, from }: LinkListProps & { readonly part: ChainPart }): JSX.Element {
  return (
    <>
      {attemptsOf(part, durationText)
        .slice(1)
        .map(({ words, links }) => (
          <li key={links[0]!.index}>
            <span class="how">{words}</span>
            <ol class="chain">
              <Links open={open} links={links} from={from} />
            </ol>
          </li>
        ))}
    </>
  );
}

function ChainButton({ open: openRecording }: { readonly open: PageRecording }): JSX.Element {
  const anchor = chainAnchor.value;
  const shownChain = anchor === undefined ? undefined : causalChain.value;
  const [firstIndex, lastIndex] = [shownChain?.indexes[0], shownChain?.indexes.at(-1)];
  return (
    <>
      <button
        type="button"
        class="story-button"
        aria-pressed={anchor !== undefined}
        title="Highlight the causes and consequences of this record in all panes. [ and ] step along them"
        onClick={toggleChain}
      >
        Causal chain
      </button>
      {shownChain !== undefined && firstIndex !== undefined && lastIndex !== undefined && (
        <span class="muted story-words">
          of #{openRecording.seqAt(anchor!)}: {shownChain.indexes.length} records{shownChain.isTruncated && ' or more'},{' '}
          {chainActors.value.size} actors,{' '}
          {durationText(openRecording.timeAt(lastIndex) - openRecording.timeAt(firstIndex))}
        </span>
      )}
    </>
  );
}

interface LinkListProps {
  readonly open: PageRecording;
  readonly from: number;
}

function Links({ open, links, from }: LinkListProps & { readonly links: readonly CauseLink[] }): JSX.Element {
  return (
    <>
      {links.map((link) => (
        <li key={link.index}>
          {link.how !== 'cause' && <span class="how">{causeLabels[link.how]}</span>}
          <Link open={open} index={link.index} from={from} />
        </li>
      ))}
    </>
  );
}

function Consequences({
  open,
  led: consequenceIndexes,
  from,
}: LinkListProps & { readonly led: readonly number[] }): JSX.Element {
  return (
    <>
      {consequenceIndexes.map((consequenceIndex) => (
        <li key={consequenceIndex}>
          <Link open={open} index={consequenceIndex} from={from} />
        </li>
      ))}
    </>
  );
}

/** Builds its children when the user opens it. */
function Fold({
  label,
  isBad: isProblem = false,
  children,
}: {
  readonly label: string;
  readonly isBad?: boolean;
  readonly children: () => JSX.Element;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="fold" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {isProblem && <MarkSign kind="failure" />}
        {label}
      </summary>
      {isOpen && <ol class="chain">{children()}</ol>}
    </details>
  );
}

function Link({
  open: openRecording,
  index,
  from,
}: {
  readonly open: PageRecording;
  readonly index: number;
  readonly from: number;
}): JSX.Element {
  const record = openRecording.recordAt(index)!;
  const offsetMs = record.t - from;
  return (
    <button type="button" class="record-link" data-record={record.seq} onClick={() => jumpTo(index)}>
      <span class="seq">{record.seq}</span>
      <span class="words">{recordText(record)}</span>
      <span class="away">{offsetMs === 0 ? '' : `${offsetMs < 0 ? '−' : '+'}${durationText(Math.abs(offsetMs))}`}</span>
    </button>
  );
}
