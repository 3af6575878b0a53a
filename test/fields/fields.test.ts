/**
 * Every field that a decoder accepts is used, marked as without effect, or rejected (`src/model/fields/effect.ts`), and
 * the mark is correct: two objects that differ only in the field give proxies different resources, or equal ones.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text } from '../../src/model/fields/decode.ts';
import { type FieldDescription, withDescription } from '../../src/model/fields/description.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { Draw } from '../random-config/draw.ts';
import { Effects, type FieldSubject, leavesOf, subjectOfKind } from './effects.ts';
import { addPlaces, parentOf, type SchemaField, shapeOf, withValueAt } from './schema-fields.ts';
import { subjects } from './subjects.ts';
import { unobservedFields } from './unobserved.ts';
import { readWorlds } from './world.ts';

const effects = new Effects(readWorlds());

const exceptionOf = (field: string) => unobservedFields.find((exception) => exception.field.test(field));

/** The error in the mark of a field; `undefined` if the mark is correct. */
function markErrorOf(
  subject: FieldSubject,
  field: SchemaField,
  places: ReturnType<Effects['placesOf']>,
): string | undefined {
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
    ? `${name} is accepted and changes nothing in ${at.length} places: use it, mark it (withoutEffect), or give the reason in test/fields/unobserved.ts`
    : undefined;
}

function markErrorsOf(subject: FieldSubject): readonly string[] {
  const places = effects.placesOf(subject);
  return leavesOf(subject).flatMap((field) => markErrorOf(subject, field, places) ?? []);
}

describe('marks of fields', () => {
  it.each(subjects.map((subject) => [subject.name, subject] as const))(
    'the mark of each field of %s is correct',
    (_, subject) => {
      expect(markErrorsOf(subject)).toEqual([]);
    },
  );
});

describe('comparison of worlds', () => {
  const subject = subjectOfKind('PeerAuthentication');
  const shape = shapeOf(subject.decoder, '');
  const fields = shape.type === 'object' ? shape.fields : [];
  const extraField = (name: string): FieldDescription => ({
    ...{ name, decoder: text, isRequired: false, refusesNull: false },
  });
  const withFields = (fieldDescriptions: readonly FieldDescription[]): FieldSubject['decoder'] =>
    withDescription((value: unknown, path: string) => subject.decoder(value, path), {
      type: 'object',
      fields: fieldDescriptions,
    });
  /** The control plane reads the changed value instead of the written one. */
  const specimensReadAs = (change: (value: object) => object): FieldSubject['specimensIn'] => {
    return (world) =>
      subject.specimensIn(world).map((specimen) => ({
        ...specimen,
        isValid: (value) => specimen.isValid(change(value as object)),
        worldWith: (value) => specimen.worldWith(change(value as object)),
      }));
  };

  it('the comparison reports a field that generators no longer read', () => {
    const specimensIn = specimensReadAs(({ portLevelMtls: _, ...read }: { portLevelMtls?: unknown }) => read);
    expect(markErrorsOf({ ...subject, specimensIn })).toEqual([
      expect.stringMatching(/portLevelMtls.* changes nothing in/),
    ]);
  });

  // Drawn once from each kind's optional fields, with a fixed seed so that a failure is reproducible.
  const draw = new Draw(36);
  const droppable = subjects.flatMap((one) => {
    const leaves = leavesOf(one).filter(
      (field) => field.effect === undefined && exceptionOf(`${one.name} ${field.path}`) === undefined,
    );
    const places = effects.placesOf(one);
    const optional = leaves.filter(({ path }) => {
      const [first] = places.get(path) ?? [];
      return first?.specimen.isValid(withoutField(one, path)(first.specimen.value)) === true;
    });
    return optional.length === 0 ? [] : [{ one, field: draw.pick(optional) }];
  });

  function withoutField({ decoder }: FieldSubject, path: string): (value: unknown) => unknown {
    return (value) => {
      const placesByPath = new Map<string, (readonly (string | number)[])[]>();
      addPlaces(decoder, value, placesByPath as Parameters<typeof addPlaces>[2]);
      return (placesByPath.get(path) ?? []).reduce((result, place) => withValueAt(result, place, undefined), value);
    };
  }

  it.each(droppable.map(({ one, field }) => [`${one.name} ${field.path}`, one, field] as const))(
    'the comparison reports that no code reads %s',
    (name, one, field) => {
      const drop = withoutField(one, field.path);
      const blind: FieldSubject = {
        ...one,
        specimensIn: (world) =>
          one
            .specimensIn(world)
            .map((specimen) => ({ ...specimen, worldWith: (value) => specimen.worldWith(drop(value)) })),
      };
      expect(markErrorOf(blind, field, effects.placesOf(blind))).toContain(
        `${name} is accepted and changes nothing in`,
      );
    },
  );

  it('the comparison reports a field that the decoder accepts but no code reads', () => {
    const specimensIn: FieldSubject['specimensIn'] = (world) =>
      specimensReadAs(({ comment: _, ...read }: { comment?: unknown }) => read)(world).map((specimen) => ({
        ...specimen,
        value: { ...(specimen.value as object), comment: 'x' },
      }));
    const decoder = withFields([...fields, extraField('comment')]);
    expect(markErrorsOf({ ...subject, decoder, specimensIn })).toEqual([
      expect.stringMatching(/PeerAuthentication comment is accepted and changes nothing in/),
    ]);
  });

  it('the comparison reports a field without a world, and an incorrect mark', () => {
    const effect = { type: 'none', reason: 'x', warns: () => true } as const;
    const markedFields = fields.map((field) => (field.name === 'mtls' ? { ...field, effect } : field));
    const decoder = withFields([...markedFields, extraField('absent')]);
    expect(markErrorsOf({ ...subject, decoder })).toEqual([
      expect.stringMatching(/PeerAuthentication mtls is marked as without effect, and has one: /),
      expect.stringMatching(/PeerAuthentication absent is in no object/),
    ]);
  });
});

describe('exceptions', () => {
  const fields = subjects.flatMap((subject) => leavesOf(subject).map(({ path }) => `${subject.name} ${path}`));

  it('each exception matches an existing field', () => {
    expect(unobservedFields.filter(({ field }) => !fields.some((name) => field.test(name)))).toEqual([]);
  });

  const read = unobservedFields.flatMap(({ field, readBy }) =>
    Array.isArray(readBy) ? [[field.source, ...readBy] as const] : [],
  );
  it.each(read)('the field of the exception %s is read by %s', (_, file, text) => {
    const path = join(packageRoot(), file);
    expect(existsSync(path) && readFileSync(path, 'utf8').includes(text)).toBe(true);
  });

  const places = new Map(subjects.map((subject) => [subject.name, effects.placesOf(subject)]));
  const namedFields = subjects.flatMap((subject) =>
    leavesOf(subject).map((field) => ({ name: `${subject.name} ${field.path}`, subject: subject.name, field })),
  );
  it.each(unobservedFields.map((exception) => [exception.field.source, exception] as const))(
    'the exception %s is needed and its reason is correct',
    (_, { field: pattern, readBy }) => {
      for (const { name, subject, field } of namedFields.filter((one) => pattern.test(one.name))) {
        const at = places.get(subject)!.get(field.path) ?? [];
        expect(at.length === 0 && !Array.isArray(readBy) ? `${name} is in no world` : undefined).toBeUndefined();
        expect(effects.difference(field, at)).toBeUndefined();
        if (readBy === 'others are rejected') expect(effects.acceptedOthers(field, at)).toEqual([]);
      }
    },
  );
});
