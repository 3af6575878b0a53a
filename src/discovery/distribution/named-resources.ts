/** Characters that continue a name: `0.0.0.0_80` does not contain the name `80`, nor `outbound|80||a.b` the name `outbound|80||a`. */
const nameCharacter = /[\w.|/*-]/;

/** Envoy names the resource at the beginning of a message. */
const maxMessageLength = 2_048;

/** Finds resource names in the text with which Envoy reports all errors of a response: `Error adding/updating listener(s) 0.0.0.0_80: …`. */
export function namesIn(message: string, names: Iterable<string>): string[] {
  const text = message.slice(0, maxMessageLength);
  const objectNames: string[] = [];
  for (const name of names) if (name !== '' && containsName(text, name)) objectNames.push(name);
  return objectNames;
}

function containsName(text: string, name: string): boolean {
  for (let matchIndex = text.indexOf(name); matchIndex !== -1; matchIndex = text.indexOf(name, matchIndex + 1)) {
    if (!isNameCharacter(text, matchIndex - 1) && !continuesName(text, matchIndex + name.length)) return true;
  }
  return false;
}

function isNameCharacter(text: string, index: number): boolean {
  return index >= 0 && nameCharacter.test(text[index]!);
}

function continuesName(text: string, index: number): boolean {
  const next = text[index];
  if (next === undefined) return false;
  if (next === '.') return isNameCharacter(text, index + 1);
  return nameCharacter.test(next);
}
