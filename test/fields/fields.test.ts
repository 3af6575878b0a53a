/**
 * Every field that a decoder accepts is used, marked as without effect, or refused (`src/model/fields/effect.ts`), and the mark is
 * true: of two objects that differ in the field alone, proxies are given something else, or the same.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text } from '../../src/model/fields/decode.ts';
import { describedAs, type FieldDescription } from '../../src/model/fields/description.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { Effects, leavesOf, type Subject, subjectOfKind } from './effects.ts';
import { parentOf, type SchemaField, shapeOf } from './schema-fields.ts';
import { subjects } from './subjects.ts';
import { unobserved } from './unobserved.ts';
import { readWorlds } from './world.ts';

const effects = new Effects(readWorlds());

const exceptionOf = (field: string) => unobserved.find((exception) => exception.field.test(field));

/** What is wrong with the mark of a field; `undefined` if it is true. */
function mistakeOf(subject: Subject, field: SchemaField, places: ReturnType<Effects['placesOf']>): string | undefined {
  const name = `${subject.name} ${field.path}`;
  const at = places.get(field.path) ?? [];
  if (field.effect?.type === 'refused') {
    const siblings = [...places].filter(([path]) => parentOf(path) === parentOf(field.path)).flatMap(([, all]) => all);
    return effects.isRefused(field, siblings) ? undefined : `${name} is marked as refused, and accepted`;
  }
  if (exceptionOf(name) !== undefined) return undefined;
  if (at.length === 0) return `${name} is in no object of test/fields/worlds`;
  const difference = effects.difference(field, at);
  if (field.effect?.type === 'none')
    return difference && `${name} is marked as without effect, and has one: ${difference}`;
  return difference === undefined
    ? `${name} is accepted and changes nothing in ${at.length} places: use it, mark it (withoutEffect), or say why in test/fields/unobserved.ts`
    : undefined;
}

function mistakesOf(subject: Subject): readonly string[] {
  const places = effects.placesOf(subject);
  return leavesOf(subject).flatMap((field) => mistakeOf(subject, field, places) ?? []);
}

describe('each field has a mark that is true', () => {
  it.each(subjects.map((subject) => [subject.name, subject] as const))('%s', (_, subject) => {
    expect(mistakesOf(subject)).toEqual([]);
  });
});

describe('the walk finds', () => {
  const subject = subjectOfKind('PeerAuthentication');
  const shape = shapeOf(subject.decoder, '');
  const fields = shape.type === 'object' ? shape.fields : [];
  const another = (name: string): FieldDescription => ({
    ...{ name, decoder: text, isRequired: false, refusesNull: false },
  });
  const withFields = (described: readonly FieldDescription[]): Subject['decoder'] =>
    describedAs((value: unknown, path: string) => subject.decoder(value, path), { type: 'object', fields: described });
  /** What the control plane gets instead of what is written. */
  const seenAs = (change: (value: object) => object): Subject['specimensIn'] => {
    return (world) =>
      subject.specimensIn(world).map((specimen) => ({
        ...specimen,
        isValid: (value) => specimen.isValid(change(value as object)),
        worldWith: (value) => specimen.worldWith(change(value as object)),
      }));
  };

  it('a field that generators no longer read', () => {
    const specimensIn = seenAs(({ portLevelMtls: _, ...read }: { portLevelMtls?: unknown }) => read);
    expect(mistakesOf({ ...subject, specimensIn })).toEqual([
      expect.stringMatching(/portLevelMtls.* changes nothing in/),
    ]);
  });

  it('a field that the decoder accepts and nothing reads', () => {
    const specimensIn: Subject['specimensIn'] = (world) =>
      seenAs(({ comment: _, ...read }: { comment?: unknown }) => read)(world).map((specimen) => ({
        ...specimen,
        value: { ...(specimen.value as object), comment: 'x' },
      }));
    const decoder = withFields([...fields, another('comment')]);
    expect(mistakesOf({ ...subject, decoder, specimensIn })).toEqual([
      expect.stringMatching(/PeerAuthentication comment is accepted and changes nothing in/),
    ]);
  });

  it('a field that no world has, and a mark that is not true', () => {
    const effect = { type: 'none', reason: 'x', warns: () => true } as const;
    const marked = fields.map((field) => (field.name === 'mtls' ? { ...field, effect } : field));
    const decoder = withFields([...marked, another('absent')]);
    expect(mistakesOf({ ...subject, decoder })).toEqual([
      expect.stringMatching(/PeerAuthentication mtls is marked as without effect, and has one: /),
      expect.stringMatching(/PeerAuthentication absent is in no object/),
    ]);
  });
});

describe('exceptions', () => {
  const fields = subjects.flatMap((subject) => leavesOf(subject).map(({ path }) => `${subject.name} ${path}`));

  it('are about fields that there are', () => {
    expect(unobserved.filter(({ field }) => !fields.some((name) => field.test(name)))).toEqual([]);
  });

  it.each(unobserved.flatMap(({ field, readBy }) => (readBy ? [[field.source, ...readBy] as const] : [])))(
    '%s is read by %s',
    (_, file, text) => {
      const path = join(packageRoot(), file);
      expect(existsSync(path) && readFileSync(path, 'utf8').includes(text)).toBe(true);
    },
  );
});
