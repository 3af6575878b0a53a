export function download(name: string, content: Blob | string, type = 'text/plain;charset=utf-8'): void {
  const address = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type }) : content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser has read the content by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** @throws Error if the browser does not allow it */
export async function copyText(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
}
