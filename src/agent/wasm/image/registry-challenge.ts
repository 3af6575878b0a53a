/** A challenge as in RFC 9110 §11.6.1, for the token service of the distribution specification. */

export interface Challenge {
  readonly scheme: string;
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

const maxHeaderLength = 8 * 1024;

/** Ignores invalid parts. */
export function parseChallenges(header: string): readonly Challenge[] {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  const text = header.slice(0, maxHeaderLength);
  const parameterPattern = /[\s,]*([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/y;
  for (let match = parameterPattern.exec(text); match !== null; match = parameterPattern.exec(text)) {
    const [, name = '', quotedValue, unquotedValue] = match;
    const value = quotedValue === undefined ? unquotedValue : quotedValue.replaceAll(/\\(.)/g, '$1');
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: new Map() });
    else challenges.at(-1)?.parameters.set(name.toLowerCase(), value);
  }
  return challenges;
}
