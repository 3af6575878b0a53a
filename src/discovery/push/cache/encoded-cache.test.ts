import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../../machines/discovery/xds/ads-types.ts';
import { givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { SecretSchema } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { clusterType, EnvoyResource, type Generator } from '../../../networking/index.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { encodeGenerated } from './encode-generated.ts';
import { EncodedCache } from './encoded-cache.ts';

const names = ['secret://one', 'secret://one-cacert', 'secret://two', 'secret://three'];

/** Generator for a resource type with names that may not exist. */
class Secrets {
  /** Existing secrets with their content. */
  readonly #contents = new Map<PushContext, Readonly<Record<string, string>>>();
  /** Requested names of each build. */
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
      build: (_shape, push, requested) => {
        this.built.push(requested);
        const contents = this.#contents.get(push)!;
        return requested.flatMap((name) => (name in contents ? [secret(name, contents[name]!)] : []));
      },
    };
    this.cache = new EncodedCache({ maxEntries: 100, generators: new Map([[secretType, generator]]) });
  }

  publish(contents: Readonly<Record<string, string>>, ...changedKeys: readonly string[]): void {
    const previous = this.#context;
    this.#context = givenMesh('').context;
    this.#contents.set(this.#context, contents);
    this.cache.carryOverSets({
      context: this.#context,
      previous,
      forced: previous === undefined,
      changedKeys: new Set(changedKeys),
    });
  }

  get(requestedNames: readonly string[] | '*' = names): ReadonlyMap<string, unknown> {
    return this.cache.get(this.#context!, secretType, shape, requestedNames)!;
  }
}

const shape = givenShape({ type: 'router' });

function secret(name: string, text: string): EnvoyResource {
  const value = { secret: { specifier: { case: 'inlineString' as const, value: text } } };
  return new EnvoyResource(name, SecretSchema, create(SecretSchema, { name, type: { case: 'genericSecret', value } }));
}

describe('EncodedCache for named resources', () => {
  let secrets: Secrets;

  beforeEach(() => {
    secrets = new Secrets();
    secrets.publish({ 'secret://one': '1', 'secret://one-cacert': '1', 'secret://two': '1' });
  });

  it('omits missing resources, and returns an empty list for a wildcard', () => {
    expect([...secrets.get().keys()].sort()).toEqual(['secret://one', 'secret://one-cacert', 'secret://two']);
    expect(secrets.get('*').size).toBe(0);
  });

  it('removes a resource from the list together with its object, and adds it when the object is created', () => {
    const secondSecret = secrets.get().get('secret://two');
    secrets.publish({ 'secret://two': '1' }, 'Secret/n/one');
    expect([...secrets.get()]).toEqual([['secret://two', secondSecret]]);
    secrets.publish({ 'secret://two': '1', 'secret://three': '1' }, 'Secret/n/three');
    expect([...secrets.get().keys()]).toEqual(['secret://two', 'secret://three']);
  });

  it('rebuilds only affected resources, and ignores kinds that do not affect their type', () => {
    secrets.get();
    secrets.built.length = 0;
    secrets.publish({ 'secret://one': '2', 'secret://two': '2' }, 'Secret/n/one', 'ServiceEntry/n/two');
    secrets.get();
    expect(secrets.built).toEqual([['secret://one', 'secret://one-cacert']]);
  });

  it('rebuilds all resources after a change of unknown extent', () => {
    secrets.get();
    secrets.built.length = 0;
    secrets.publish({ 'secret://one': '2' }, 'ConfigMap/n/one');
    secrets.get();
    expect(secrets.built[0]).toHaveLength(names.length);
  });

  it('returns the same list if none of its resources differs', () => {
    const earlierList = secrets.get();
    secrets.publish({ 'secret://one': '1', 'secret://one-cacert': '1', 'secret://two': '1' }, 'Secret/n/three');
    expect(secrets.get()).toBe(earlierList);
  });
});

it('EncodedCache releases an unused list even if there are few lists', async () => {
  const generator: Generator = {
    scope: 'named',
    build: (_shape, _push, requested) => requested.map((name) => secret(name, 'content')),
  };
  const cache = new EncodedCache({ maxEntries: 100, generators: new Map([[secretType, generator]]) });
  const { context } = givenMesh('');
  cache.carryOverSets({ context, previous: undefined, forced: true, changedKeys: new Set() });
  const keptNames = ['kept'];
  cache.get(context, secretType, shape, keptNames);
  for (let i = 0; i < 50; i++) {
    const requestedNames = Array.from({ length: 100 }, (_, j) => `${i}-${j}`);
    cache.get(context, secretType, shape, requestedNames);
  }
  await eventually('the others are gone', async () => {
    await collectGarbage();
    return cache.sizes()[secretType]!.entries <= 101;
  });
  expect(cache.get(context, secretType, shape, keptNames)?.has('kept')).toBe(true);
});

describe('EncodedCache for a resource that cannot be encoded', () => {
  const failedNames: string[] = [];
  let contents: Record<string, string>;
  let cache: EncodedCache;
  let context: PushContext | undefined;
  const requestedNames = ['one', 'two'];

  beforeEach(() => {
    failedNames.length = 0;
    context = undefined;
    const build = (): EnvoyResource[] => Object.entries(contents).map(([name, content]) => secret(name, content));
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
        return encodeGenerated(resource);
      },
      onUnencodable: ({ name }, error) => failedNames.push(`${name}: ${messageOf(error)}`),
    });
  });

  function publish(next: Record<string, string>): void {
    contents = next;
    const previous = context;
    context = givenMesh('').context;
    const changedKeys = new Set(['Secret/n/one', 'Service/n/one']);
    cache.carryOverSets({ context, previous, forced: previous === undefined, changedKeys });
  }

  it.each([
    ['requested by name', secretType, requestedNames],
    ['in a wildcard list', clusterType, '*'],
  ] as const)('omits the resource and reports this once: %s', (_, type, names) => {
    publish({ one: 'bad', two: 'good' });
    for (let i = 0; i < 3; i++) expect([...cache.get(context!, type, shape, names)!.keys()]).toEqual(['two']);
    expect(failedNames).toEqual(['one: no such number']);
    publish({ one: 'good', two: 'good' });
    const [one, secondResource] = ['one', 'two'].map((name) => cache.get(context!, type, shape, names)!.get(name));
    expect([one, secondResource]).not.toContain(undefined);
    publish({ one: 'bad', two: 'other' });
    const now = cache.get(context!, type, shape, names)!;
    expect(now.get('one')).toBe(one);
    expect(now.get('two')).not.toBe(secondResource);
  });
});
