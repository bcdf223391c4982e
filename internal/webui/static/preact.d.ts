// What the pages use of preact.js, for the check of types.
type Node = any
export function html(strings: TemplateStringsArray, ...values: any[]): Node
export function render(node: Node, parent: Element): void
export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void]
export function useEffect(effect: () => void | (() => void), inputs?: readonly any[]): void
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly any[]): void
export function useRef<T>(first: T): {current: T}
export function useMemo<T>(make: () => T, inputs: readonly any[]): T
