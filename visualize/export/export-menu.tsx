import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { range } from '../model/place.ts';
import { currentRange, type ExportCommand, exportCommands } from './export-commands.ts';

const isOpen = signal(false);
const notice = signal('');
const noticeMs = 4_000;

export function ExportMenu(): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  const close = (focusButton: boolean): void => {
    isOpen.value = false;
    if (focusButton) button.current?.focus();
  };
  return (
    <div class="export">
      <button
        type="button"
        ref={button}
        aria-haspopup="menu"
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          event.stopPropagation();
          isOpen.value = true;
        }}
      >
        Export
      </button>
      {isOpen.value && <Menu close={close} />}
      <span class="export-notice" role="status">
        {notice.value}
      </span>
    </div>
  );
}

function Menu({ close }: { close: (focusButton: boolean) => void }): JSX.Element {
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    notice.value = '';
    itemsOf(menu.current)[0]?.focus();
    const outside = (event: PointerEvent): void => {
      if (!(event.target as Element).closest('.export')) close(false);
    };
    document.addEventListener('pointerdown', outside);
    return () => document.removeEventListener('pointerdown', outside);
  }, []);
  const now = currentRange();
  return (
    <div
      class="export-menu popup"
      role="menu"
      aria-label="Export"
      ref={menu}
      onKeyDown={(event) => onKey(event, menu.current, close)}
    >
      <p class="export-range">{rangeText()}</p>
      {[...Map.groupBy(exportCommands, ({ group }) => group)].map(([group, commands]) => (
        // biome-ignore lint/a11y/useSemanticElements: a menu's group is no form's.
        <div key={group} role="group" aria-label={group} class="export-group">
          <span class="export-heading" aria-hidden="true">
            {group}
          </span>
          {commands.map((command) => (
            <Item
              key={command.name}
              command={command}
              disabledReason={now && disabledReasonOf(command, now)}
              isEnabled={now !== undefined}
              close={close}
            />
          ))}
        </div>
      ))}
    </div>
  );
}

interface ItemProps {
  command: ExportCommand;
  disabledReason: string | undefined;
  isEnabled: boolean;
  close: (focusButton: boolean) => void;
}

function Item({ command, disabledReason, isEnabled, close }: ItemProps): JSX.Element {
  const isDisabled = disabledReason !== undefined || !isEnabled;
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      aria-disabled={isDisabled}
      title={disabledReason}
      onClick={() => {
        if (isDisabled) {
          showNotice(disabledReason ?? 'Nothing to export yet.');
          return;
        }
        close(true);
        void run(command);
      }}
    >
      {command.name}
    </button>
  );
}

async function run(command: ExportCommand): Promise<void> {
  const now = currentRange();
  if (now === undefined) return;
  try {
    showNotice(await command.run(now.open, now.exported));
  } catch (error) {
    showNotice(`Export failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function disabledReasonOf(
  command: ExportCommand,
  { open, exported }: NonNullable<ReturnType<typeof currentRange>>,
): string | undefined {
  return command.unavailableReason?.(open, exported);
}

function showNotice(message: string): void {
  notice.value = message;
  setTimeout(() => {
    if (notice.value === message) notice.value = '';
  }, noticeMs);
}

function rangeText(): string {
  const now = currentRange();
  if (now === undefined) return 'No trace is open.';
  const { open, exported } = now;
  const count = exported.last - exported.first + 1;
  const records = `${count} ${count === 1 ? 'record' : 'records'}`;
  if (range.value === undefined) return `Whole trace, ${records}. Shift + drag on the timeline to select a range.`;
  return `Records ${open.seqAt(exported.first)} to ${open.seqAt(exported.last)}: ${records}.`;
}

function onKey(event: KeyboardEvent, menu: HTMLElement | null, close: (focusButton: boolean) => void): void {
  const items = itemsOf(menu);
  const focusedIndex = items.indexOf(document.activeElement as HTMLElement);
  const next = { ArrowDown: focusedIndex + 1, ArrowUp: focusedIndex - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === 'Escape') close(true);
  else if (event.key === 'Tab') close(false);
  else if (next !== undefined) items.at(next % items.length)?.focus();
  else return;
  if (event.key !== 'Tab') event.preventDefault();
  event.stopPropagation();
}

function itemsOf(menu: HTMLElement | null): HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
}
