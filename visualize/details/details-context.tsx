import type { JSX } from 'preact';
import type { ContextChange } from '../../src/runtime/trace/trace.ts';
import { valueAt } from '../../src/runtime/trace/trace-state.ts';
import { changesOf, shortenPair } from '../model/context-change.ts';
import type { Moment } from '../model/moment.ts';
import { moreText } from '../parts/more.ts';
import { Column } from './column.tsx';
import { CopyButton } from './copy-button.tsx';
import { Json } from './json.tsx';

const maxChanges = 100;

export function Context({ moment }: { readonly moment: Moment }): JSX.Element {
  const { actor, stateBefore, stateAfter } = moment;
  const context = stateAfter?.context ?? stateBefore?.context;
  const changes = context === undefined ? [] : changesOf(moment);
  const previousValues = new Map(
    changes.slice(0, maxChanges).map(({ path }) => [path, valueAt(stateBefore?.context, path)]),
  );
  return (
    <Column label="Context" part="context">
      <h3 class="column-head">
        Context of {actor}
        {context !== undefined && <CopyButton text={() => JSON.stringify(context, null, 2)} label="context" />}
      </h3>
      {context === undefined ? (
        <p class="muted">No context.</p>
      ) : (
        <>
          <Changes changes={changes} previous={stateBefore?.context} />
          <Json value={context} markedPaths={previousValues} />
        </>
      )}
    </Column>
  );
}

function Changes({
  changes,
  previous,
}: {
  readonly changes: readonly ContextChange[];
  readonly previous: unknown;
}): JSX.Element {
  if (changes.length === 0) return <p class="muted">No changes.</p>;
  return (
    <ul class="changes" aria-label="Changes">
      {changes.slice(0, maxChanges).map((change) => {
        const [oldText, newText] = shortenPair(valueAt(previous, change.path) ?? 'nothing', change.value);
        return (
          <li key={change.path} data-path={change.path}>
            <span class="key">
              {change.path === '' ? 'whole context' : change.path.slice(1).replaceAll('/', ' › ')}
            </span>
            <del>{oldText}</del>
            <span class="step">→</span>
            {'value' in change ? <ins>{newText}</ins> : <ins class="muted">removed</ins>}
          </li>
        );
      })}
      {changes.length > maxChanges && (
        <li class="muted">{moreText(changes.length - maxChanges, 'copy the context to see all')}</li>
      )}
    </ul>
  );
}
