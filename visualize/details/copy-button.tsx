import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { notice } from '../model/connection.ts';
import { Icon } from '../parts/icon.tsx';

const saidForMs = 1_200;

export function CopyButton({ text, what }: { readonly text: () => string; readonly what: string }): JSX.Element {
  const done = useSignal(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      done.value = true;
      setTimeout(() => {
        done.value = false;
      }, saidForMs);
    } catch {
      notice.value = 'The browser denies this page access to the clipboard.';
    }
  };
  return (
    <button
      type="button"
      class="quiet copy"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy()}
    >
      {done.value ? 'copied' : <Icon name="copy" />}
    </button>
  );
}
