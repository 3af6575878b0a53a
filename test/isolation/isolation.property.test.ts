import { describe, expect, it } from 'vitest';
import { crossNamespaceProblems } from '../../src/discovery/config/validation/cross-namespace-problems.ts';
import type { Config } from '../../src/model/config/config.ts';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { kinds } from '../../src/model/kinds/index.ts';
import { defaultMeshConfig } from '../../src/model/mesh/mesh-config.ts';
import { sized } from '../harness/size-of-run.ts';
import { Draw } from '../random-config/draw.ts';
import { documentedCases } from './documented-cases.ts';
import { effectsOf, effectText, type VictimEffect } from './effects.ts';
import { makers, registeredEntry, someKinds, type TenantObject, tenantObject } from './tenant-objects.ts';
import { changesBetween, sameServed, VictimMesh } from './victims.ts';

/** Printed with each finding: equal seeds generate equal objects. */
const baseSeed = Number(process.env.ISOLATION_SEED ?? 33);
const objectCount = Number(process.env.ISOLATION_OBJECTS ?? sized({ short: 120, full: 20_000 }));

/** Stops a hanging run. On a busy machine a run takes minutes. */
const timeoutMs = sized({ short: 900_000, full: 3_600_000 });

/** Nothing in the tenant's namespace may affect others. */
const closedSettings = { meshConfig: 'exportingNamespaces: [bank, shop]', allowedRoutes: 'Same' } as const;

/** Objects created together: some of them related, and sometimes a machine that registers itself. */
function drawObjects(draw: Draw, groups: number): readonly TenantObject[] {
  const drawnObjects = draw
    .list(groups, groups, () => someKinds(draw))
    .flat()
    .map((kind, objectIndex) => tenantObject(kind, draw, objectIndex));
  const entry = draw.chance(0.1 * groups) ? registeredEntry(draw, drawnObjects.length) : undefined;
  return entry === undefined ? drawnObjects : [...drawnObjects, entry];
}

const configsOf = (objects: readonly TenantObject[]): readonly Config[] => objects.flatMap(({ configs }) => configs);
const seedText = (seed: number, objects: readonly TenantObject[]): string =>
  `seed ${seed}\n${objects.map(({ text }) => text).join('\n---\n')}\n`;

const exporting: ReadonlySet<string> = new Set(['DestinationRule', 'ServiceEntry', 'VirtualService']);

/** Restricts an object to its namespace, like a well-meaning author. Istio cannot restrict the label that makes a Service a network gateway. */
function restrictedToNamespace(object: TenantObject): TenantObject {
  const configs = object.configs.map((config): Config => {
    const { kind, spec, annotations } = config;
    if (kind === 'Service') {
      const { 'topology.istio.io/network': _, ...labels } = config.labels;
      return { ...config, labels, annotations: { ...annotations, 'networking.istio.io/exportTo': '.' } };
    }
    return exporting.has(kind) ? { ...config, spec: { ...(spec as object), exportTo: ['.'] } } : config;
  });
  return { ...object, configs };
}

/** Reduces the objects while the finding persists. */
function smallest(objects: readonly TenantObject[], isFound: (fewer: readonly TenantObject[]) => boolean) {
  return objects.reduce((remaining, one) => {
    const fewerObjects = remaining.filter((other) => other !== one);
    return isFound(fewerObjects) ? fewerObjects : remaining;
  }, objects);
}

describe('random objects of a tenant', () => {
  it('include every namespaced kind, with some valid objects of each', () => {
    const namespaced = Object.entries(kinds).filter(([, { scope }]) => scope === 'Namespaced');
    expect(Object.keys(makers).sort()).toEqual(namespaced.map(([kind]) => kind).sort());
    const invalidKinds = Object.keys(makers).filter((kind) => {
      const drawnObjects = Array.from({ length: 30 }, (_, objectIndex) =>
        tenantObject(kind as never, new Draw(baseSeed + objectIndex), objectIndex),
      );
      return !drawnObjects.some(({ isValid }) => isValid);
    });
    expect(invalidKinds).toEqual([]);
  });
});

/** Fails at the first object that changes any byte of a proxy in another namespace. */
function expectNoChange(mesh: VictimMesh, objectCount: number, draw: (seed: number) => readonly TenantObject[]): void {
  const differs = (objects: readonly TenantObject[]): boolean =>
    !sameServed(mesh.baseline, mesh.servedWith(configsOf(objects)));
  let count = 0;
  for (let seed = baseSeed; count < objectCount; seed++) {
    const objects = draw(seed);
    count += objects.length;
    if (!differs(objects)) continue;
    const fewObjects = smallest(objects, differs);
    const changes = effectsOf(changesBetween(mesh.baseline, mesh.servedWith(configsOf(fewObjects)))).map(effectText);
    expect.fail(`${seedText(seed, fewObjects)}${changes.join('\n')}`);
  }
  expect(sameServed(mesh.baseline, mesh.servedWith([]))).toBe(true);
}

describe('proxies of other namespaces', () => {
  const manyObjects = (seed: number): readonly TenantObject[] => drawObjects(new Draw(seed), 12);

  it(
    `are unaffected by objects of a namespace that is not allowed to export (${objectCount} objects from seed ${baseSeed})`,
    () => expectNoChange(new VictimMesh(closedSettings), objectCount, manyObjects),
    timeoutMs,
  );

  it(
    'are unaffected by objects of a namespace that is not allowed to export, without a Kubernetes registry',
    () => expectNoChange(new VictimMesh({ ...closedSettings, registries: [] }), objectCount / 2, manyObjects),
    timeoutMs,
  );

  it(
    "are unaffected by objects restricted to their own namespace, if Istio's settings close the rest",
    () => {
      const settings = { features: { gatewaysOfOwnNamespace: true }, meshConfig: 'ingressControllerMode: "OFF"' };
      const mesh = new VictimMesh({ ...settings, allowedRoutes: 'Same' });
      expectNoChange(mesh, objectCount / 2, (seed) => manyObjects(seed).map(restrictedToNamespace));
    },
    timeoutMs,
  );
});

describe('objects of a namespace with default settings', () => {
  it(
    `affect proxies of other namespaces only as in documented cases (${objectCount} objects)`,
    () => {
      const mesh = new VictimMesh();
      const effects = (objects: readonly TenantObject[]): readonly VictimEffect[] =>
        effectsOf(changesBetween(mesh.baseline, mesh.servedWith(configsOf(objects))));
      const findings: string[] = [];
      let count = 0;
      for (let seed = baseSeed; count < objectCount; seed++) {
        const objects = drawObjects(new Draw(seed), 1);
        count += objects.length;
        const all = effects(objects);
        if (all.length === 0) continue;
        const effectsWithout = objects.map((one) => {
          const otherObjects = objects.filter((other) => other !== one);
          return new Map(effects(otherObjects).map((effect) => [effectText(effect), JSON.stringify(effect.current)]));
        });
        for (const effect of all) {
          const isCause = (_: TenantObject, index: number): boolean => {
            const otherEffects = effectsWithout[index]!;
            return (
              !otherEffects.has(effectText(effect)) ||
              otherEffects.get(effectText(effect)) !== JSON.stringify(effect.current)
            );
          };
          const causes = objects.filter(isCause);
          const configs = configsOf(causes.length === 0 ? objects : causes);
          if (documentedCases.some(({ allows }) => allows(effect, configs))) continue;
          findings.push(
            `${seedText(seed, causes)}${effectText(effect)}\n${JSON.stringify(effect.previous)}\n${JSON.stringify(effect.current)}`,
          );
        }
        if (findings.length > 20) break;
      }
      expect(
        findings,
        findings
          .slice(0, 20)
          .map((one) => one.slice(0, 1500))
          .join('\n\n'),
      ).toEqual([]);
    },
    timeoutMs,
  );
});

describe.each(documentedCases)(
  'the documented case "$title"',
  ({ example, code, closedBy, isOwnersChoice, allows }) => {
    const { configs, problems } = readConfigFile(
      'attack.yaml',
      example.map((object) => JSON.stringify(object)).join('\n---\n'),
      {
        creationTimestamp: 0,
      },
    );

    it('the example has the effect, and documented cases explain all of its changes', () => {
      expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
      const mesh = new VictimMesh();
      const effects = effectsOf(changesBetween(mesh.baseline, mesh.servedWith(configs)));
      expect(effects.filter((effect) => allows(effect, configs))).not.toEqual([]);
      const unexplained = effects.filter((effect) => !documentedCases.some((one) => one.allows(effect, configs)));
      expect(unexplained.map(effectText)).toEqual([]);
    });

    it('the settings named by the case prevent every change', () => {
      for (const settings of [closedSettings, ...(closedBy === undefined ? [] : [closedBy])]) {
        const mesh = new VictimMesh(settings);
        const effects = effectsOf(changesBetween(mesh.baseline, mesh.servedWith(configs)));
        expect(effects.map(effectText)).toEqual([]);
      }
    });

    it.runIf(code !== undefined)('validate warns about the case', () => {
      const settings = { mesh: defaultMeshConfig, scopesGateways: false, domain: 'cluster.local' };
      const all = [...new VictimMesh().configs, ...(isOwnersChoice ? [] : configs)];
      const foundProblems = crossNamespaceProblems(all, settings).filter((problem) => problem.code === code);
      expect(foundProblems.map(({ key }) => key!.namespace)).toContain(isOwnersChoice ? 'istio-system' : 'mallory');
      const trusted = { ...settings, mesh: { ...defaultMeshConfig, exportingNamespaces: ['bank', 'shop', 'mallory'] } };
      if (!isOwnersChoice) expect(crossNamespaceProblems(configs, trusted)).toEqual([]);
    });
  },
);
