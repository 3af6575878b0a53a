import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { Icon } from './icon.tsx';

export type Pane = 'actors' | 'chart' | 'sequence' | 'timeline' | 'details';

export const largePane = signal<Pane | undefined>(undefined);

export function showAllPanes(): void {
  largePane.value = undefined;
}

export function LargeButton({ pane }: { readonly pane: Pane }): JSX.Element {
  const isLarge = largePane.value === pane;
  const label = isLarge ? 'Show all panes (Escape)' : `Maximize ${pane}`;
  return (
    <button
      type="button"
      class="quiet large-button"
      aria-label={label}
      aria-pressed={isLarge}
      title={label}
      onClick={() => {
        largePane.value = isLarge ? undefined : pane;
      }}
    >
      <Icon name={isLarge ? 'smaller' : 'larger'} />
    </button>
  );
}
