import { effect, signal } from '@preact/signals';
import type { JSX } from 'preact';
import { storedValue, storeValue } from '../model/page-storage.ts';
import { Icon } from '../parts/icon.tsx';

type Choice = 'system' | 'light' | 'dark';

const choices: readonly Choice[] = ['system', 'light', 'dark'];
const choice = signal<Choice>(choices.find((candidate) => candidate === storedValue('theme')) ?? 'system');
const names: Readonly<Record<Choice, string>> = { system: 'system', light: 'light', dark: 'dark' };

export function startTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const systemIsDark = signal(system.matches);
  system.addEventListener('change', ({ matches }) => {
    systemIsDark.value = matches;
  });
  effect(() => {
    const isDark = choice.value === 'dark' || (choice.value === 'system' && systemIsDark.value);
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  });
}

export function ThemeSwitch(): JSX.Element {
  const nextChoice = choices[(choices.indexOf(choice.value) + 1) % choices.length]!;
  const label = `Theme: ${names[choice.value]}. Switch to ${names[nextChoice]}`;
  return (
    <button
      type="button"
      class="quiet"
      id="theme"
      aria-label={label}
      title={label}
      onClick={() => {
        choice.value = nextChoice;
        storeValue('theme', nextChoice);
      }}
    >
      <Icon name={choice.value} />
    </button>
  );
}
