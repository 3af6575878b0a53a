import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../../machines/discovery/xds/ads-types.ts';
import { givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { SecretSchema } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { clusterType, type Generator, Resource } from '../../../networking/index.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { encodeMade } from './encode-made.ts';
import { EncodedCache } from './encoded-cache.ts';

const names = ['secret://one', 'secret://one-cacert', 'secret://two', 'secret://three'];

/** Things of a type that are there or not, asked for by name. */
class Secrets {
  /** What there is in each context, and its content. */
  readonly #contents = new Map<PushContext, Readonly<Record<string, string>>>();
  /** The names of each building. */
  readonly built: (readonly string[])[] = [];
  readonly cache: EncodedCache;
  #context: PushContext | undefined;

  constructor() {
    const generator: Generator = {
      scope: 'named',
      narrowing: {
        kinds: new Set(['Secret']),
        subjectOfName: (name) => name.replace('secret://', '').replace('-cacert', ''),
        subjectOfKey: ({ name }) => name,
      },
      build: (_shape, push, asked) => {
        this.built.push(asked);
        const contents = this.#contents.get(push)!;
        return asked.flatMap((name) => (name in contents ? [secret(name, contents[name]!)] : []));
      },
    };
    this.cache = new EncodedCache({ maxEntries: 100, generators: new Map([[secretType, generator]]) });
  }

  publish(contents: Readonly<Record<string, string>>, ...changed: readonly string[]): void {
    const previous = this.#context;
    this.#context = givenMesh('').context;
    this.#contents.set(this.#context, contents);
    this.cache.carryOver({
      context: this.#context,
      previous,
      forced: previous === undefined,
      changed: new Set(changed),
    });
  }

  get(wanted: readonly string[] | '*' = names): ReadonlyMap<string, unknown> {
    return this.cache.get(this.#context!, secretType, shape, wanted)!;
  }
}

const shape = givenShape({ type: 'router' });

function secret(name: string, text: string): Resource {
  const value = { secret: { specifier: { case: 'inlineString' as const, value: text } } };
  return new Resource(name, SecretSchema, create(SecretSchema, { name, type: { case: 'genericSecret', value } }));
}

describe('what is asked for by name and may not exist', () => {
  let secrets: Secrets;

  beforeEach(() => {
    secrets = new Secrets();
    secrets.publish({ 'secret://one': '1', 'secret://one-cacert': '1', 'secret://two': '1' });
  });

  it('is not in the list, and nothing is for those who ask for all', () => {
    expect([...secrets.get().keys()].sort()).toEqual(['secret://one', 'secret://one-cacert', 'secret://two']);
    expect(secrets.get('*').size).toBe(0);
  });

  it('leaves the list when its object goes, and comes when it comes', () => {
    const two = secrets.get().get('secret://two');
    secrets.publish({ 'secret://two': '1' }, 'Secret/n/one');
    expect([...secrets.get()]).toEqual([['secret://two', two]]);
    secrets.publish({ 'secret://two': '1', 'secret://three': '1' }, 'Secret/n/three');
    expect([...secrets.get().keys()]).toEqual(['secret://two', 'secret://three']);
  });

  it('is made again for the names that a change is about, whatever else changed that the type has nothing of', () => {
    secrets.get();
    secrets.built.length = 0;
    secrets.publish({ 'secret://one': '2', 'secret://two': '2' }, 'Secret/n/one', 'ServiceEntry/n/two');
    secrets.get();
    expect(secrets.built).toEqual([['secret://one', 'secret://one-cacert']]);
  });

  it('is made again for all names when a kind changed that nobody can narrow down', () => {
    secrets.get();
    secrets.built.length = 0;
    secrets.publish({ 'secret://one': '2' }, 'ConfigMap/n/one');
    secrets.get();
    expect(secrets.built[0]).toHaveLength(names.length);
  });

  it('is the same list when nothing of it is another', () => {
    const before = secrets.get();
    secrets.publish({ 'secret://one': '1', 'secret://one-cacert': '1', 'secret://two': '1' }, 'Secret/n/three');
    expect(secrets.get()).toBe(before);
  });
});

it('a list that nobody wants any more is not kept, however few there are', async () => {
  const generator: Generator = {
    scope: 'named',
    build: (_shape, _push, asked) => asked.map((name) => secret(name, 'content')),
  };
  const cache = new EncodedCache({ maxEntries: 100, generators: new Map([[secretType, generator]]) });
  const { context } = givenMesh('');
  cache.carryOver({ context, previous: undefined, forced: true, changed: new Set() });
  const kept = ['kept'];
  cache.get(context, secretType, shape, kept);
  for (let i = 0; i < 50; i++) {
    const wanted = Array.from({ length: 100 }, (_, j) => `${i}-${j}`);
    cache.get(context, secretType, shape, wanted);
  }
  await eventually('the others are gone', async () => {
    await collectGarbage();
    return cache.sizes()[secretType]!.entries <= 101;
  });
  expect(cache.get(context, secretType, shape, kept)?.has('kept')).toBe(true);
});

describe('a resource that cannot be encoded', () => {
  const failed: string[] = [];
  let contents: Record<string, string>;
  let cache: EncodedCache;
  let context: PushContext | undefined;
  const wanted = ['one', 'two'];

  beforeEach(() => {
    failed.length = 0;
    context = undefined;
    const build = (): Resource[] => Object.entries(contents).map(([name, content]) => secret(name, content));
    const generator = { named: { scope: 'named', build }, all: { scope: 'all', build } } as const;
    cache = new EncodedCache({
      maxEntries: 100,
      generators: new Map<string, Generator>([
        [secretType, generator.named],
        [clusterType, generator.all],
      ]),
      encode: (resource) => {
        const bytes = resource.chunks[0]!;
        if (Buffer.from(bytes).includes('bad')) throw new RangeError('no such number');
        return encodeMade(resource);
      },
      unencodable: ({ name }, error) => failed.push(`${name}: ${messageOf(error)}`),
    });
  });

  function publish(next: Record<string, string>): void {
    contents = next;
    const previous = context;
    context = givenMesh('').context;
    const changed = new Set(['Secret/n/one', 'Service/n/one']);
    cache.carryOver({ context, previous, forced: previous === undefined, changed });
  }

  it.each([
    ['asked for by name', secretType, wanted],
    ['of a list of all', clusterType, '*'],
  ] as const)('costs itself and nobody else, and is told of: %s', (_, type, names) => {
    publish({ one: 'bad', two: 'good' });
    for (let i = 0; i < 3; i++) expect([...cache.get(context!, type, shape, names)!.keys()]).toEqual(['two']);
    expect(failed).toEqual(['one: no such number']);
    publish({ one: 'good', two: 'good' });
    const [one, two] = ['one', 'two'].map((name) => cache.get(context!, type, shape, names)!.get(name));
    expect([one, two]).not.toContain(undefined);
    publish({ one: 'bad', two: 'other' });
    const now = cache.get(context!, type, shape, names)!;
    expect(now.get('one')).toBe(one);
    expect(now.get('two')).not.toBe(two);
  });
});
