import type { JSX } from 'preact';
import { type CauseKind, type CauseOrigin, causeChain } from '../../src/debugger/trace/cause-chain.ts';
import { jumpTo } from '../model/place.ts';
import type { Recording } from '../model/recording.ts';
import { durationInWords, recordInWords } from '../model/words.ts';

/** Links and consequences that are listed; a chain may be long. */
const listed = 30;
const origins: Readonly<Record<CauseOrigin, string>> = {
  outside: 'It came from outside of the program.',
  start: 'It began with the program.',
  lost: 'What came before is not in the trace.',
  long: 'It goes on for longer than anybody reads.',
};
const kinds: Readonly<Record<Exclude<CauseKind, 'cause'>, string>> = {
  'timer-started': 'the timer was started by',
  told: 'an effect, after it was told',
  spawned: 'an effect, since it was started by',
  'ended-by': 'it ended in',
};

/** Why it happened, back to what nobody here caused; and what came of it. */
export function Causes({ open, index }: { readonly open: Recording; readonly index: number }): JSX.Element {
  const { links, origin } = causeChain(open, index);
  const record = open.records[index]!;
  const led = open.ledTo(record.seq);
  return (
    <div class="column scroll" data-part="causes">
      <h3 class="column-head">Why</h3>
      <ol class="chain" aria-label="Causes, the nearest first">
        {links.slice(0, listed).map((link) => (
          <li key={link.index}>
            {link.how !== 'cause' && <span class="how">{kinds[link.how]}</span>}
            <Link open={open} index={link.index} from={record.t} />
          </li>
        ))}
        <li class="origin">{links.length > listed ? `… and ${links.length - listed} more` : origins[origin]}</li>
      </ol>
      <h3 class="column-head">What it led to</h3>
      {led.length === 0 ? (
        <p class="muted">Nothing that is recorded.</p>
      ) : (
        <ol class="chain" aria-label="What it led to">
          {led.slice(0, listed).map((at) => (
            <li key={at}>
              <Link open={open} index={at} from={record.t} />
            </li>
          ))}
          {led.length > listed && <li class="muted">… and {led.length - listed} more</li>}
        </ol>
      )}
    </div>
  );
}

function Link({
  open,
  index,
  from,
}: {
  readonly open: Recording;
  readonly index: number;
  readonly from: number;
}): JSX.Element {
  const record = open.records[index]!;
  const away = record.t - from;
  return (
    <button type="button" class="record-link" data-record={record.seq} onClick={() => jumpTo(index)}>
      <span class="seq">{record.seq}</span>
      <span class="words">{recordInWords(record)}</span>
      <span class="away">{away === 0 ? '' : `${away < 0 ? '−' : '+'}${durationInWords(Math.abs(away))}`}</span>
    </button>
  );
}
