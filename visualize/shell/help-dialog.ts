/** The help as an element of the page: keys open it, and are not the page's while it is open. */

export function openHelp(): void {
  helpDialog()?.showModal();
}

export function isHelpOpen(): boolean {
  return helpDialog()?.open ?? false;
}

function helpDialog(): HTMLDialogElement | null {
  return document.getElementById('help') as HTMLDialogElement | null;
}
