export interface CelToken {
  readonly kind: 'literal' | 'name' | 'sign';
  readonly text: string;
  /** Value of a string literal; absent if escapes would have to be decoded. */
  readonly string?: string;
}

const escapePattern = String.raw`\\(?:[abfnrtv\\?"'\x60]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})`;

const rules: readonly (readonly [CelToken['kind'] | 'blank', RegExp])[] = [
  ['blank', /[\t\n\f\r ]+|\/\/[^\n]*/y],
  ['literal', /[bB]?[rR](?:"""[\s\S]*?"""|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')/y],
  ['literal', new RegExp(`[bB]?(?:"""(?:[^\\\\]|${escapePattern})*?"""|'''(?:[^\\\\]|${escapePattern})*?''')`, 'y')],
  [
    'literal',
    new RegExp(`[bB]?(?:"(?:[^\\\\"\\n\\r]|${escapePattern})*"|'(?:[^\\\\'\\n\\r]|${escapePattern})*')`, 'y'),
  ],
  [
    'literal',
    /(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+[uU]?|\d+[uU]?)(?!\w)/y,
  ],
  ['literal', /(?:true|false|null)(?!\w)/y],
  ['name', /[A-Za-z_]\w*/y],
  ['sign', /\|\||&&|<=|>=|==|!=|[<>+\-*/%!?:.,()[\]{}]/y],
];

/** @returns the tokens, or a description of the error */
export function tokensOf(text: string): readonly CelToken[] | string {
  const tokens: CelToken[] = [];
  for (let offset = 0; offset < text.length; ) {
    const token = tokenAt(text, offset);
    if (token === undefined) return `unexpected ${JSON.stringify(text.slice(offset, offset + 20))}`;
    offset += token.text.length;
    if (token.kind !== 'blank') tokens.push({ ...token, kind: token.kind, ...stringOf(token.text) });
  }
  return tokens;
}

function tokenAt(text: string, offset: number): { kind: CelToken['kind'] | 'blank'; text: string } | undefined {
  for (const [kind, rule] of rules) {
    rule.lastIndex = offset;
    const tokenText = rule.exec(text)?.[0];
    if (tokenText !== undefined && tokenText !== '') return { kind, text: tokenText };
  }
  return undefined;
}

function stringOf(text: string): { string?: string } {
  const rawString = /^[rR](["'])([\s\S]*)\1$/.exec(text);
  if (rawString !== null) return { string: rawString[2]! };
  const quotedMatch = /^(["'])([^\\]*)\1$/.exec(text);
  return quotedMatch === null ? {} : { string: quotedMatch[2]! };
}
