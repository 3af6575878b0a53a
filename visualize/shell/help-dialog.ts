/** The page ignores keys while the dialog is open. */

export function openHelp(): void {
  helpDialog()?.showModal();
}

export function isHelpOpen(): boolean {
  return helpDialog()?.open ?? false;
}

function helpDialog(): HTMLDialogElement | null {
  return document.getElementById('help') as HTMLDialogElement | null;
}
