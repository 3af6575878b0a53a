/** Which of the resources that a client has are named in the message by which it rejects some of them. */

/** What a name may go on with: `80` is not named by `0.0.0.0_80`, nor `outbound|80||a` by `outbound|80||a.b`. */
const partOfName = /[\w.|/*-]/;

/** A message is read no further; Envoy names what it is about at the beginning. */
const longestMessage = 2_048;

/**
 * Envoy says of a response as a whole what is wrong with which resource: `Error adding/updating listener(s) 0.0.0.0_80: …`. A name
 * within a longer one that is there as well is not meant.
 */
export function namesIn(message: string, names: Iterable<string>): string[] {
  const text = message.slice(0, longestMessage);
  const found: string[] = [];
  for (const name of names) if (name !== '' && isNamed(text, name)) found.push(name);
  return found;
}

function isNamed(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1)) {
    if (!isPart(text, at - 1) && !goesOn(text, at + name.length)) return true;
  }
  return false;
}

function isPart(text: string, at: number): boolean {
  return at >= 0 && partOfName.test(text[at]!);
}

/** A full stop may be the sentence's. */
function goesOn(text: string, at: number): boolean {
  const next = text[at];
  if (next === undefined) return false;
  if (next === '.') return isPart(text, at + 1);
  return partOfName.test(next);
}
