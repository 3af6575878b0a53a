import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, fail } from '../model/fields/decode.ts';
import * as violation from '../model/fields/violation.ts';
import { parseYamlDocument } from '../model/yaml/yaml-document.ts';
import { isObject } from '../runtime/json-object.ts';
import type { Json } from './pod/pod.ts';

/** Errors have the line within the text. The value of an empty text is `undefined`. */
export function parseYamlText(text: string, path: string): Decoded<unknown> {
  const { value, errors } = parseYamlDocument({ text, line: 1 });
  const [firstError] = errors;
  if (firstError === undefined) return E.right(value);
  const [message = ''] = firstError.message.split('\n');
  return fail(path, violation.malformedValue(`line ${firstError.line}: ${message}`));
}

/** An empty text is an empty object. */
export function parseYamlObject(text: string, path: string): Decoded<Json> {
  const parsedYaml = parseYamlText(text, path);
  if (E.isLeft(parsedYaml)) return parsedYaml;
  const value = parsedYaml.right ?? {};
  return isObject(value) ? E.right(value) : fail(path, violation.wrongType('an object', value));
}
