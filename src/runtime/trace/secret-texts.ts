export const redacted = '[redacted]';

const secretWords =
  'passw(?:or)?d|passwd|passphrase|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|credential|authorization|cookie';
const secretWord = new RegExp(`${secretWords}|[_-](?:pass|pwd)$|^pass(?:code)?$`, 'i');
/** `tokenFile`, `credentialName`: the location of the secret, not the secret. */
const reference = /(?:name|file|path|dir|directory|type|policy|provider|audience)s?$/i;

export function isSecretName(name: string): boolean {
  return secretWord.test(name) && !reference.test(name);
}

/** With an `@` before the first slash, all text up to the last such `@` is user and password. */
const urlWithPassword = /(:\/\/([^\s/:@]{0,64}):)([^\s/]+|[^\s@"'<>]{1,512}(?:@[^\s/@]*)*)@/g;

/** `10.0.0.1:8080/mail/a@b`: a host with its port, and a path with an `@` in it. */
function isPort(user: string, password: string): boolean {
  return user.startsWith('[') || (/\.|^localhost$/.test(user) && /^\d{1,5}[/?#]/.test(password));
}

type Pattern = readonly [RegExp, string | ((...groups: string[]) => string)];

// Repetitions that can start anywhere are bounded, so that a crafted text cannot block the program.
const patterns: readonly Pattern[] = [
  [/-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,60}-----|$)/g, redacted],
  // Private keys in base64, as JSON shows bytes; certificates have similar text and are kept.
  [/LS0tLS1CRUdJTi[A-Za-z0-9+/]*={0,2}/g, (pem) => (decodeBase64(pem).includes('PRIVATE KEY') ? redacted : pem)],
  [/\b(Bearer|bearer|BEARER)\s{1,8}[\w.~+/=-]{8,}/g, `$1 ${redacted}`],
  [/\b(Basic|basic|BASIC)\s{1,8}(?=[\w+/=-]*[A-Z0-9])[\w+/=-]{8,}/g, `$1 ${redacted}`],
  // JSON Web Tokens: base64url of `{"` and the following parts.
  [/\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g, redacted],
  [/\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-)[\w-]{10,}/g, redacted],
  [urlWithPassword, (all, start, user, password) => (isPort(user!, password!) ? all! : `${start}${redacted}@`)],
  // Entire HTTP header lines.
  [/\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s{0,4}[:=]\s{0,4})[^\s"'][^\r\n"']*/gi, `$1$2${redacted}`],
  // As Envoy prints headers: 'x-api-key', 'value'
  [new RegExp(`((?:${secretWords})[\\w.-]{0,64}["'],\\s{0,4}["'])[^"'\\n]+`, 'gi'), `$1${redacted}`],
  // name = "value", also in JSON, and in JSON inside JSON
  [
    new RegExp(
      `((?:${secretWords})[\\w.-]{0,64})(\\\\?["']?\\s{0,4}[:=]\\s{0,4})(\\\\?["'])(?:(?!\\3)(?:\\\\.|[^\\\\]))+`,
      'gi',
    ),
    (all, name, assignment, quote) => (reference.test(name!) ? all! : `${name}${assignment}${quote}${redacted}`),
  ],
  [
    new RegExp(`((?:${secretWords})[\\w.-]{0,64})(\\\\?["']?\\s{0,4}[:=]\\s{0,4})[^\\s"',;&}\\\\[]{4,}`, 'gi'),
    (all, name, assignment) => (reference.test(name!) ? all! : `${name}${assignment}${redacted}`),
  ],
];
/** Fast path: most texts contain none of the words that the patterns start with. */
const suspiciousPattern = new RegExp(
  `-----BEGIN|LS0tLS1CRUdJTi|bearer|basic|eyJ|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|://[^\\s@]{0,640}@|${secretWords}`,
  'i',
);

export function redactSuspiciousText(text: string): string {
  if (!suspiciousPattern.test(text)) return text;
  return patterns.reduce((safeText, [pattern, replacement]) => safeText.replace(pattern, replacement as string), text);
}

function decodeBase64(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1');
}

/** Shorter texts occur by chance and must stay readable. */
const minSecretLength = 6;
const minLineLength = 16;

/** Also matches texts encoded as JSON, URL or base64; `undefined` without texts. */
export function patternOfSecrets(secrets: readonly string[]): RegExp | undefined {
  const forms = secrets.flatMap((secret) => {
    const trimmedSecret = secret.trim();
    // A key of several lines may be written line by line.
    const lines = trimmedSecret
      .split(/\r?\n/)
      .filter((line) => line.length >= minLineLength && !line.startsWith('-----'));
    return [trimmedSecret, ...(lines.length > 1 ? lines : [])].flatMap(encodedFormsOf);
  });
  const distinctForms = [...new Set(forms)].filter((form) => form.length >= minSecretLength);
  if (distinctForms.length === 0) return undefined;
  const byLengthDescending = distinctForms.sort((a, b) => b.length - a.length);
  return new RegExp(byLengthDescending.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
}

function encodedFormsOf(text: string): string[] {
  if (text.length < minSecretLength) return [];
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text.toWellFormed()),
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
  ];
}

export function secretsIn(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, value = '']) => {
    if (isSecretName(name)) return isSetting(value) ? [] : [value];
    return [...value.matchAll(urlWithPassword)].flatMap(([, , user, password]) =>
      isPort(user!, password!) ? [] : [password!],
    );
  });
}

/** A switch or a duration (`SECRET_TTL=24h`), which occurs in texts by chance. */
function isSetting(value: string): boolean {
  return /^(?:true|false|(?:\d+(?:\.\d+)?(?:ms|[smhd]))+)$/.test(value);
}
