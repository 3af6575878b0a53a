import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { openFiles } from '../model/opened-files.ts';

const isDraggedOver = signal(false);

export function startOpeningDroppedFiles(): void {
  const isFile = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') === true;
  document.addEventListener('dragover', (event) => {
    if (!isFile(event)) return;
    // Prevents the browser from leaving the page to open the file.
    event.preventDefault();
    isDraggedOver.value = true;
  });
  document.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) isDraggedOver.value = false;
  });
  document.addEventListener('drop', (event) => {
    isDraggedOver.value = false;
    if (!isFile(event)) return;
    event.preventDefault();
    void openFiles([...(event.dataTransfer?.files ?? [])]);
  });
}

export function DropZone(): JSX.Element | null {
  return isDraggedOver.value ? <div class="drop-zone">Drop traces to open them</div> : null;
}

export function OpenFile(): JSX.Element {
  return (
    <label class="open-file" title="Open trace files of this computer. They stay in this browser">
      Open…
      <input
        type="file"
        class="hidden"
        multiple
        aria-label="Open traces"
        onChange={({ currentTarget }) => {
          const files = [...(currentTarget.files ?? [])];
          currentTarget.value = '';
          void openFiles(files);
        }}
      />
    </label>
  );
}
