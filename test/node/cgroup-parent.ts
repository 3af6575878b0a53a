/** The parent of a node's pod cgroups, in each hierarchy of this machine. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/runtime/errors.ts';
import { isAlive } from '../harness/process-alive.ts';

const root = '/sys/fs/cgroup';
/** Hierarchy of v2 if v1 exists, too. */
const unified = join(root, 'unified');
const prefix = 'cp-node-';
/** Controllers that the kubelet requires in cgroup v2. */
const controllers = '+cpu +cpuset +memory +pids';
/**
 * By default a cgroup has the weight of one process: next to 50 processes all pods together got a fiftieth of the processors, probes timed out, and
 * requests failed because no endpoint was ready. A node has about 20 runnable processes.
 */
const weights = { 'cpu.shares': '20480', 'cpu.weight': '2000' };

/** @returns its name, which contains this process's ID, so that `removeAbandonedCgroups` finds it after this process was killed */
export function createCgroupParent(): string {
  const name = `${prefix}${process.pid}-${crypto.randomUUID().slice(0, 6)}`;
  for (const hierarchy of hierarchies()) {
    const isUnified = existsSync(join(hierarchy, 'cgroup.controllers'));
    if (isUnified) writeFileSync(join(hierarchy, 'cgroup.subtree_control'), controllers);
    mkdirSync(join(hierarchy, name));
    if (isUnified) writeFileSync(join(hierarchy, name, 'cgroup.subtree_control'), controllers);
    for (const [file, weight] of Object.entries(weights)) {
      if (existsSync(join(hierarchy, name, file))) writeFileSync(join(hierarchy, name, file), weight);
    }
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const inherited = join(hierarchy, file);
      // A new cpuset of v1 is empty, and no process may enter it.
      if (!isUnified && existsSync(inherited)) writeFileSync(join(hierarchy, name, file), readFileSync(inherited));
    }
  }
  return name;
}

/**
 * Removes the cgroup, whose processes must have exited.
 * @throws Error if a cgroup is not empty
 */
export function removeCgroupParent(name: string): void {
  for (const folder of foldersOf(name)) removeTree(folder);
}

/** Removes cgroups of killed test runs. */
export function removeAbandonedCgroups(): void {
  const names = new Set([...hierarchies(), unified].filter(existsSync).flatMap((folder) => readdirSync(folder)));
  for (const name of names) {
    const owner = Number(new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]);
    if (!(owner > 0) || isAlive(owner)) continue;
    try {
      removeCgroupParent(name);
    } catch (error) {
      // The cgroup's processes may still be exiting; the next node tries again.
      console.error(`cgroup ${name} remains: ${messageOf(error)}`);
    }
  }
}

/** Returns the hierarchy of cgroup v2, or all of v1. */
function hierarchies(): string[] {
  if (existsSync(join(root, 'cgroup.controllers'))) return [root];
  return readdirSync(root)
    .map((name) => join(root, name))
    .filter((folder) => folder !== unified)
    .filter((folder) => existsSync(join(folder, 'cgroup.procs')));
}

/** Includes an unused hierarchy of v2, in which runc creates the cgroup, too. */
function foldersOf(name: string): string[] {
  return [...hierarchies(), unified].map((hierarchy) => join(hierarchy, name));
}

function removeTree(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  rmdirSync(folder);
}
