// view.ts - what a view is, and the part of the fleet that is looked at.
import type { Fleet, Group, Store } from './model.ts';

// What the page looks at: a fleet, and a group of it.
export interface Scope {
  fleetName: string;
  fleet: Fleet;
  groupId: string;
  group: Group;
}

export interface View {
  readonly root: HTMLElement;
  // Something has changed; called ten times a second while the view is shown.
  update(store: Store, scope: Scope): void;
}
