import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { range } from '../model/place.ts';
import { currentRange, type ExportCommand, exportCommands } from './export-commands.ts';

const isMenuOpen = signal(false);
const noticeText = signal('');
const noticeMs = 4_000;

export function ExportMenu(): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  const close = (focusButton: boolean): void => {
    isMenuOpen.value = false;
    if (focusButton) button.current?.focus();
  };
  return (
    <div class="export">
      <button
        type="button"
        ref={button}
        aria-haspopup="menu"
        aria-expanded={isMenuOpen.value}
        onClick={() => {
          isMenuOpen.value = !isMenuOpen.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          event.stopPropagation();
          isMenuOpen.value = true;
        }}
      >
        Export
      </button>
      {isMenuOpen.value && <Menu close={close} />}
      <span class="export-notice" role="status">
        {noticeText.value}
      </span>
    </div>
  );
}

function Menu({ close }: { close: (focusButton: boolean) => void }): JSX.Element {
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    noticeText.value = '';
    itemsOf(menu.current)[0]?.focus();
    const onPointerDownOutside = (event: PointerEvent): void => {
      if (!(event.target as Element).closest('.export')) close(false);
    };
    document.addEventListener('pointerdown', onPointerDownOutside);
    return () => document.removeEventListener('pointerdown', onPointerDownOutside);
  }, []);
  const currentExport = currentRange();
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
            <MenuItem
              key={command.name}
              command={command}
              disabledReason={currentExport && disabledReasonOf(command, currentExport)}
              isEnabled={currentExport !== undefined}
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

function MenuItem({ command, disabledReason, isEnabled, close }: ItemProps): JSX.Element {
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
  const currentExport = currentRange();
  if (currentExport === undefined) return;
  try {
    showNotice(await command.run(currentExport.open, currentExport.exported));
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
  noticeText.value = message;
  setTimeout(() => {
    if (noticeText.value === message) noticeText.value = '';
  }, noticeMs);
}

function rangeText(): string {
  const currentExport = currentRange();
  if (currentExport === undefined) return 'No trace is open.';
  const { open, exported } = currentExport;
  const count = exported.last - exported.first + 1;
  const records = `${count} ${count === 1 ? 'record' : 'records'}`;
  if (range.value === undefined) return `Whole trace, ${records}. Shift + drag on the timeline to select a range.`;
  return `Records ${open.seqAt(exported.first)} to ${open.seqAt(exported.last)}: ${records}.`;
}

function onKey(event: KeyboardEvent, menu: HTMLElement | null, close: (focusButton: boolean) => void): void {
  const menuItems = itemsOf(menu);
  const focusedIndex = menuItems.indexOf(document.activeElement as HTMLElement);
  const nextIndex = { ArrowDown: focusedIndex + 1, ArrowUp: focusedIndex - 1, Home: 0, End: menuItems.length - 1 }[
    event.key
  ];
  if (event.key === 'Escape') close(true);
  else if (event.key === 'Tab') close(false);
  else if (nextIndex !== undefined) menuItems.at(nextIndex % menuItems.length)?.focus();
  else return;
  if (event.key !== 'Tab') event.preventDefault();
  event.stopPropagation();
}

function itemsOf(menu: HTMLElement | null): HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];
}
