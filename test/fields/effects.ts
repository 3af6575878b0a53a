/**
 * Determines whether a field of a kind affects the resources of proxies, with two objects that differ only in this
 * field.
 */
import * as E from 'fp-ts/lib/Either.js';
import type { Decoder } from '../../src/model/fields/decode.ts';
import { kinds } from '../../src/model/kinds/index.ts';
import { meshConfigPart, readMeshConfig } from '../../src/model/mesh/mesh-config.decode.ts';
import { otherValues } from './other-values.ts';
import { addPlaces, fieldsWithin, type Place, type SchemaField, valueAt, withValueAt } from './schema-fields.ts';
import { type Output, outputOf, type World, type WorldObject } from './world.ts';

/** A kind, or the mesh configuration. */
export interface Subject {
  readonly name: string;
  readonly decoder: Decoder<unknown>;
  /** Values of the subject in a world. */
  readonly specimensIn: (world: World) => readonly Specimen[];
}

export interface Specimen {
  readonly value: unknown;
  readonly isValid: (value: unknown) => boolean;
  readonly worldWith: (value: unknown) => World;
}

const maxTries = 150;
const maxTriesAtOnePlace = 5;

/** One place of a field in a world. */
export interface Occurrence {
  readonly world: World;
  readonly specimen: Specimen;
  readonly place: Place;
}

export function subjectOfKind(name: keyof typeof kinds): Subject {
  const kind = kinds[name];
  const { decoder, body, group, writtenAs = name } = kind;
  const isOfKind = (object: WorldObject): boolean =>
    object.kind === writtenAs && object.apiVersion.slice(0, Math.max(0, object.apiVersion.lastIndexOf('/'))) === group;
  return {
    ...{ name, decoder },
    specimensIn: (world) =>
      world.objects.flatMap((object, index): Specimen[] => {
        if (!isOfKind(object)) return [];
        const { apiVersion, kind: written, metadata, ...rest } = object;
        return [
          {
            value: body === 'spec' ? object.spec : rest,
            isValid: (value) => E.isRight(kind.decode(value, String(metadata.namespace ?? 'default'))),
            worldWith: (value) => {
              const bodyOf = body === 'spec' ? { ...rest, spec: value } : (value as object);
              const changed = { apiVersion, kind: written, metadata, ...bodyOf } as WorldObject;
              return { ...world, objects: world.objects.with(index, changed) };
            },
          },
        ];
      }),
  };
}

/** The mesh configuration. An invalid provider is omitted, so its errors are no effect of its fields. */
export const meshSubject: Subject = {
  name: 'MeshConfig',
  decoder: meshConfigPart,
  specimensIn: (world) =>
    Object.keys(world.meshConfig).length === 0
      ? []
      : [
          {
            value: world.meshConfig,
            isValid: (value) => {
              const read = readMeshConfig('mesh.yaml', JSON.stringify(value));
              return E.isRight(read) && !read.right.warnings.some(({ message }) => message.endsWith('is left out'));
            },
            worldWith: (value) => ({ ...world, meshConfig: value as World['meshConfig'] }),
          },
        ],
};

export class Effects {
  readonly #worlds: readonly World[];
  readonly #bases = new Map<Specimen, Output>();

  constructor(worlds: readonly World[]) {
    this.#worlds = worlds;
  }

  /** Occurrences by field path. */
  placesOf({ name, decoder, specimensIn }: Subject): ReadonlyMap<string, readonly Occurrence[]> {
    const found = new Map<string, Occurrence[][]>();
    for (const world of this.#worlds)
      for (const specimen of specimensIn(world)) {
        const places = new Map<string, Place[]>();
        addPlaces(decoder, specimen.value, places);
        for (const [path, all] of places)
          found.set(path, [...(found.get(path) ?? []), all.map((place) => ({ world, specimen, place }))]);
      }
    return new Map([...found].map(([path, all]) => [path, inTurns(all, `${name} ${path}`)]));
  }

  /**
   * Compares the outputs of pairs of worlds that differ only in the field.
   *
   * @returns the first pair of values with different outputs, or `undefined`
   */
  difference({ path, decoder }: SchemaField, occurrences: readonly Occurrence[]): string | undefined {
    let left = maxTries;
    for (const { world, specimen, place } of occurrences) {
      let leftHere = maxTriesAtOnePlace;
      const before = valueAt(specimen.value, place);
      const [first, ...others] = otherValues(decoder, before, path);
      for (const other of [...(first === undefined ? [] : [first]), undefined, ...others]) {
        const value = withValueAt(specimen.value, place, other);
        if (!specimen.isValid(value)) continue;
        const base = this.#baseOf(specimen);
        const output = outputWith(specimen.worldWith(value), base);
        if (output === undefined) continue;
        if (output !== base.text) {
          return `${world.name}: ${place.join('.')}: ${JSON.stringify(before)} → ${JSON.stringify(other) ?? 'absent'}`;
        }
        left -= 1;
        leftHere -= 1;
        if (left === 0) return undefined;
        if (leftHere === 0) break;
      }
    }
    return undefined;
  }

  /** Other values that the decoder accepts at the field's places, except `false` for a switch. */
  acceptedOthers({ path, decoder }: SchemaField, occurrences: readonly Occurrence[]): readonly unknown[] {
    return occurrences.flatMap(({ specimen, place }) =>
      otherValues(decoder, valueAt(specimen.value, place), path).filter(
        (other) => other !== false && specimen.isValid(withValueAt(specimen.value, place, other)),
      ),
    );
  }

  /** Whether objects with the field are rejected, tried next to other fields of the same part of an object. */
  isRefused({ path }: SchemaField, siblings: readonly Occurrence[]): boolean {
    const name = path.slice(path.lastIndexOf('.') + 1);
    return (
      siblings.length > 0 &&
      siblings.every(
        ({ specimen: { value, isValid }, place }) => !isValid(withValueAt(value, [...place.slice(0, -1), name], 'x')),
      )
    );
  }

  #baseOf(specimen: Specimen): Output {
    const known = this.#bases.get(specimen) ?? outputOf(specimen.worldWith(specimen.value));
    this.#bases.set(specimen, known);
    return known;
  }
}

/** `undefined` if the mesh is invalid. */
function outputWith(world: World, { asked }: Output): string | undefined {
  try {
    return outputOf(world, asked).text;
  } catch {
    return undefined;
  }
}

/**
 * First elements of all lists, then second elements: a second place in the same specimen seldom shows an effect that
 * the first one does not.
 */
function inTurns(lists: readonly (readonly Occurrence[])[], field: string): readonly Occurrence[] {
  const longest = Math.max(...lists.map((list) => list.length));
  const all = Array.from({ length: longest }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
  const isFirst = ({ world }: Occurrence): number => (world.shows.includes(field) ? 0 : 1);
  return all.toSorted((a, b) => isFirst(a) - isFirst(b));
}

export function leavesOf(subject: Subject): readonly SchemaField[] {
  return fieldsWithin(subject.decoder).filter(({ isLeaf }) => isLeaf);
}
