import type { JSX } from 'preact';
import type { MarkKind } from '../model/recording/lanes.ts';
import { fieldNames } from '../model/search.ts';
import { Icon } from '../parts/icon.tsx';
import { MarkSign, markNames } from '../parts/mark-shape.tsx';
import { openHelp } from './help-dialog.ts';
import { characterKeys, commands, switchCharacterKeys } from './keys.ts';

export function HelpButton(): JSX.Element {
  return (
    <button type="button" class="quiet" aria-label="Help" title="Help (?)" onClick={openHelp}>
      <Icon name="help" />
    </button>
  );
}

export function Help(): JSX.Element {
  return (
    <dialog id="help" aria-labelledby="help-heading" closedby="any">
      <form method="dialog">
        <header>
          <h2 id="help-heading">Keyboard shortcuts</h2>
          <button type="submit" class="quiet" aria-label="Close">
            <Icon name="close" />
          </button>
        </header>
        <dl>
          {commands.map(({ id, description, keyLabels, isCharacter = false }) => (
            <div key={id} class={isCharacter && !characterKeys.value ? 'off' : undefined}>
              <dt>
                {keyLabels.map((keyName) => (
                  <kbd key={keyName}>{keyName}</kbd>
                ))}
              </dt>
              <dd>{description}</dd>
            </div>
          ))}
        </dl>
        <label class="character-keys">
          <input
            type="checkbox"
            checked={characterKeys.value}
            onChange={({ currentTarget }) => switchCharacterKeys(currentTarget.checked)}
          />
          Enable shortcuts that are a single character. Disable them if speech input types them. W, S, A and D are
          positions on an English keyboard.
        </label>
        <h2>Mouse</h2>
        <p>
          On the timeline: drag to move through time, Shift + drag to select a range for exports, scroll to zoom, click
          a mark to go to its record, click collapsed idle time to expand it. Drag the borders between panes to resize
          them; double-click a border to reset it.
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
        <p>A dot beside a mark: several marks overlap, and the most severe is drawn. Zoom in to separate them.</p>
        <h2>Search</h2>
        <p>
          Words match all fields and payloads. A field name restricts a word to that field:{' '}
          {fieldNames.map((name) => `${name}:`).join(' ')} A minus excludes matches: <code>-kind:timer</code>.
        </p>
        <h2>Links</h2>
        <p>
          The address of the page contains the source, record, actor and range, but no key. You can share it: it opens
          in each browser that has opened the address that chartpilot visualize printed.
        </p>
      </form>
    </dialog>
  );
}
