/** The text of a page that has everything in itself: put together by `chartpilot visualize --output`, and by the page. */

/** The page as it is built. */
export interface PageTexts {
  readonly 'index.html': string;
  readonly 'page.js': string;
  readonly 'page.css': string;
}

/** The script as it stands in the file: its policy names the hash of exactly that. */
export function inlineScript(script: string): string {
  // In JavaScript as in JSON, such a text stands only inside of a string, where the escape means the same.
  return script
    .replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '')
    .replaceAll('</script', '\\x3c/script')
    .replaceAll('<!--', '\\x3c!--');
}

/**
 * What comes before the data and what comes behind them.
 *
 * @param hash SHA-256 of {@link inlineScript}, in base64
 * @throws Error when the page was not built of `visualize/index.html`
 */
export function aroundData(texts: PageTexts, hash: string): { readonly before: string; readonly behind: string } {
  const [head, body] = split(texts['index.html'], '<script src="page.js"></script>');
  const before = withStyles(head, texts['page.css'], hash);
  return { before, behind: `<script>${inlineScript(texts['page.js'])}</script>${body}` };
}

/** An element that holds JSON for the page. */
export function jsonElement(id: string, value: unknown): string {
  return `<script type="application/json" id="${id}">${withoutTags(JSON.stringify(value))}</script>\n`;
}

/** The beginning and the end of an element that holds a trace: what is between has gone through {@link withoutTags}. */
export function traceTags(id: string): readonly [string, string] {
  return [`<script type="text/plain" id="${id}">`, '</script>\n'];
}

/** JSON has a < only inside of strings. */
export function withoutTags(json: string): string {
  return json.replaceAll('<', '\\u003c');
}

function withStyles(head: string, styles: string, hash: string): string {
  // No connect-src: there is nothing to ask anybody for.
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const [before, after] = split(head, '<link rel="stylesheet" href="page.css">');
  const [top, rest] = split(before, '<meta charset="utf-8">');
  const css = styles.replace(/\n?\/\*# sourceMappingURL=.*\s*$/, '').replaceAll('</style', '<\\/style');
  return `${top}<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="${policy}">${rest}<style>${css}</style>${after}`;
}

function split(html: string, at: string): [string, string] {
  const place = html.indexOf(at);
  if (place === -1) throw new Error(`visualize/index.html does not contain ${at}`);
  return [html.slice(0, place), html.slice(place + at.length)];
}
