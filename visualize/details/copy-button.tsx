import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { connectionNotice } from '../model/connection.ts';
import { Icon } from '../parts/icon.tsx';

const confirmationMs = 1_200;

export function CopyButton({ text, label }: { readonly text: () => string; readonly label: string }): JSX.Element {
  const isCopied = useSignal(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      isCopied.value = true;
      setTimeout(() => {
        isCopied.value = false;
      }, confirmationMs);
    } catch {
      connectionNotice.value = 'The browser denies this page access to the clipboard.';
    }
  };
  return (
    <button
      type="button"
      class="quiet copy"
      aria-label={`Copy ${label}`}
      title={`Copy ${label}`}
      onClick={() => void copy()}
    >
      {isCopied.value ? 'copied' : <Icon name="copy" />}
    </button>
  );
}
