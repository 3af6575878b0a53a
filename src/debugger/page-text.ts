/** Text of a single-file page, for `chartpilot visualize --output` and for the page itself. */

export interface PageTexts {
  readonly 'index.html': string;
  readonly 'page.js': string;
  readonly 'page.css': string;
}

/** The content security policy contains the hash of exactly this text. */
export function inlineScript(script: string): string {
  // In JavaScript and JSON these texts occur only inside strings, where the escape has the same meaning.
  return script
    .replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '')
    .replaceAll('</script', '\\x3c/script')
    .replaceAll('<!--', '\\x3c!--');
}

/**
 * @param hash SHA-256 of {@link inlineScript}, in base64
 * @throws Error if the page was not built from `visualize/index.html`
 */
export function splitPage(texts: PageTexts, hash: string): { readonly textBefore: string; readonly behind: string } {
  const [head, body] = splitOnce(texts['index.html'], '<script src="page.js"></script>');
  const textBefore = withStyles(head, texts['page.css'], hash);
  return { textBefore, behind: `<script>${inlineScript(texts['page.js'])}</script>${body}` };
}

export function jsonElement(id: string, value: unknown): string {
  return `<script type="application/json" id="${id}">${escapeTags(JSON.stringify(value))}</script>\n`;
}

/** The content between the tags must be escaped by {@link escapeTags}. */
export function traceTags(id: string): readonly [string, string] {
  return [`<script type="text/plain" id="${id}">`, '</script>\n'];
}

/** JSON contains < only inside strings. */
export function escapeTags(json: string): string {
  return json.replaceAll('<', '\\u003c');
}

function withStyles(head: string, styles: string, hash: string): string {
  // No `connect-src`: the page sends no requests.
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const [textBefore, textAfter] = splitOnce(head, '<link rel="stylesheet" href="page.css">');
  const [textBeforeCharset, textAfterCharset] = splitOnce(textBefore, '<meta charset="utf-8">');
  const css = styles.replace(/\n?\/\*# sourceMappingURL=.*\s*$/, '').replaceAll('</style', '<\\/style');
  return `${textBeforeCharset}<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="${policy}">${textAfterCharset}<style>${css}</style>${textAfter}`;
}

function splitOnce(html: string, separator: string): [string, string] {
  const index = html.indexOf(separator);
  if (index === -1) throw new Error(`visualize/index.html does not contain ${separator}`);
  return [html.slice(0, index), html.slice(index + separator.length)];
}
