import type { JSX } from 'preact';
import type { MarkKind } from '../model/lanes.ts';
import { fieldNames } from '../model/search.ts';
import { Icon } from '../parts/icon.tsx';
import { MarkSign, markNames } from '../parts/mark-shape.tsx';
import { openHelp } from './help-dialog.ts';
import { characterKeys, commands, switchCharacterKeys } from './keys.ts';

export function HelpButton(): JSX.Element {
  return (
    <button type="button" class="quiet" aria-label="Help: all keys" title="Help: all keys (?)" onClick={openHelp}>
      <Icon name="help" />
    </button>
  );
}

export function Help(): JSX.Element {
  return (
    <dialog id="help" aria-labelledby="help-heading" closedby="any">
      <form method="dialog">
        <header>
          <h2 id="help-heading">Keys</h2>
          <button type="submit" class="quiet" aria-label="Close">
            <Icon name="close" />
          </button>
        </header>
        <dl>
          {commands.map(({ id, does, shown, isCharacter = false }) => (
            <div key={id} class={isCharacter && !characterKeys.value ? 'off' : undefined}>
              <dt>
                {shown.map((one) => (
                  <kbd key={one}>{one}</kbd>
                ))}
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <label class="character-keys">
          <input
            type="checkbox"
            checked={characterKeys.value}
            onChange={({ currentTarget }) => switchCharacterKeys(currentTarget.checked)}
          />
          Keys that are a single letter, digit or sign. Switch them off where speech types them. W, S, A and D are where
          they are on an English keyboard.
        </label>
        <h2>Mouse</h2>
        <p>
          On the timeline: drag to go through time, Shift + drag to choose a range for exports, wheel to zoom, click a
          mark to go there, click a folded time to open it. Drag the borders between panes; a double click puts them
          back.
        </p>
        <h2>Marks on the timeline</h2>
        <ul class="legend">
          {(Object.keys(markNames) as MarkKind[]).map((kind) => (
            <li key={kind}>
              <MarkSign kind={kind} />
              {markNames[kind]}
            </li>
          ))}
        </ul>
        <p>A dot beside a mark: several are in the same place, the worst is drawn; zoom in to tell them apart.</p>
        <h2>Search</h2>
        <p>
          Words are looked for everywhere. A field before them looks there only:{' '}
          {fieldNames.map((name) => `${name}:`).join(' ')} A minus turns a word round: <code>-kind:timer</code>.
        </p>
        <h2>Links</h2>
        <p>
          The page's address holds the source, the record, the chosen actor and the range, and no key: it may stand in a
          ticket, and opens in each browser that was let in by the address that chartpilot visualize printed.
        </p>
      </form>
    </dialog>
  );
}
