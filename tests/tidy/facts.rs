//! What a Rust file says, as far as the rules ask: functions, modules, macros, paths, and where it waits.

use std::collections::BTreeMap;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Item, Signature, UseTree};

/// Where in a file something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The inline modules around it, outermost first.
    pub(crate) scope: Vec<String>,
    /// Whether it is built for tests only.
    pub(crate) test: bool,
}

/// A path such as `std::time::Instant`, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) segments: Vec<String>,
    /// Whether `::*` follows.
    pub(crate) glob: bool,
    pub(crate) place: Place,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From the first line of its signature to its closing brace.
    pub(crate) lines: usize,
}

/// A `mod name;` whose content is in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    /// What `#[path = "…"]` says.
    pub(crate) path: Option<String>,
    pub(crate) place: Place,
}

/// Everything that the rules ask of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) functions: Vec<Function>,
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) inline_modules: Vec<Vec<String>>,
    pub(crate) mentions: Vec<Mention>,
    /// What a local name stands for, by its `use`.
    pub(crate) aliases: BTreeMap<String, Vec<String>>,
    /// Names of invoked macros.
    pub(crate) macros: Vec<(String, Place)>,
    /// Every `async` and `.await`.
    pub(crate) waits: Vec<Place>,
}

impl Facts {
    /// Reads a file's text.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let file = syn::parse_file(text).map_err(|error| error.to_string())?;
        let mut collector = Collector::default();
        collector.visit_file(&file);
        Ok(collector.facts)
    }
}

#[derive(Default)]
struct Collector {
    facts: Facts,
    scope: Vec<String>,
    test: bool,
}

impl Collector {
    fn place(&self, span: Span) -> Place {
        Place { line: span.start().line, scope: self.scope.clone(), test: self.test }
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        let line = signature.span().start().line;
        let lines = block.brace_token.span.close().end().line + 1 - line;
        self.facts.functions.push(Function { name: signature.ident.to_string(), line, lines });
    }

    fn mention(&mut self, segments: Vec<String>, glob: bool, span: Span) {
        let place = self.place(span);
        self.facts.mentions.push(Mention { segments, glob, place });
    }

    fn use_tree(&mut self, tree: &UseTree, mut before: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.use_tree(&path.tree, before);
            }
            UseTree::Name(name) => {
                // `use a::b::{self}` names `a::b`.
                if name.ident != "self" {
                    before.push(name.ident.to_string());
                }
                self.imported(before.last().cloned(), before, name.ident.span());
            }
            UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.imported(Some(rename.rename.to_string()), before, rename.ident.span());
            }
            UseTree::Glob(glob) => self.mention(before, true, glob.span()),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.use_tree(item, before.clone())),
        }
    }

    fn imported(&mut self, name: Option<String>, path: Vec<String>, span: Span) {
        if let Some(name) = name.filter(|_| !self.test) {
            self.facts.aliases.insert(name, path.clone());
        }
        self.mention(path, false, span);
    }

    /// Paths inside a macro's arguments, which are tokens without a grammar.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut start = Span::call_site();
        let mut colons = 0;
        for token in tokens {
            if let TokenTree::Punct(punct) = &token
                && punct.as_char() == ':'
            {
                colons += 1;
                continue;
            }
            if colons != 2 || !matches!(token, TokenTree::Ident(_)) {
                self.end_of_path(&mut path, start);
                start = token.span();
            }
            colons = 0;
            match token {
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.end_of_path(&mut path, start);
    }

    fn end_of_path(&mut self, path: &mut Vec<String>, span: Span) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.mention(path, false, span);
        }
    }

    fn module(&mut self, module: &syn::ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_none() {
            let path = module.attrs.iter().find_map(path_attribute);
            let place = self.place(module.span());
            self.facts.declarations.push(Declaration { name, path, place });
            return;
        }
        self.scope.push(name);
        self.facts.inline_modules.push(self.scope.clone());
        visit::visit_item_mod(self, module);
        self.scope.pop();
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        let outside = self.test;
        self.test |= attributes(item).iter().any(is_for_tests);
        visit::visit_item(self, item);
        self.test = outside;
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module(module);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&item.tree, Vec::new());
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        if let Some(token) = signature.asyncness {
            self.facts.waits.push(self.place(token.span));
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, expression: &'ast syn::ExprAsync) {
        self.facts.waits.push(self.place(expression.async_token.span));
        visit::visit_expr_async(self, expression);
    }

    fn visit_expr_await(&mut self, expression: &'ast syn::ExprAwait) {
        self.facts.waits.push(self.place(expression.await_token.span));
        visit::visit_expr_await(self, expression);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            self.mention(segments, false, path.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        if let Some(name) = invocation.path.segments.last() {
            let place = self.place(invocation.path.span());
            self.facts.macros.push((name.ident.to_string(), place));
        }
        self.tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
    }
}

/// The attributes of an item that can be left out of a build; other items are rare, and count as built always.
#[allow(clippy::wildcard_enum_match_arm, reason = "the grammar's own enum, which grows with the language")]
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]` and `#[test]`; `cfg(any(test, …))` is also built for others.
fn is_for_tests(attribute: &Attribute) -> bool {
    let cfg_test = attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"));
    cfg_test || attribute.path().is_ident("test")
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("path").then(|| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn paths(text: &str) -> Vec<String> {
        let facts = Facts::of(text).unwrap();
        facts.mentions.iter().map(|m| m.segments.join("::") + if m.glob { "::*" } else { "" }).collect()
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let text = "use crate::{engine::{self, Handle as H}, events::*};";
        assert_eq!(paths(text), ["crate::engine", "crate::engine::Handle", "crate::events::*"]);
    }

    #[test]
    fn paths_inside_expressions_types_and_macros_are_seen() {
        assert_eq!(paths("fn f() { a::b(); }"), ["a::b"]);
        assert_eq!(paths("type T = Vec<a::b::C>;"), ["a::b::C"]);
        assert_eq!(paths("fn f() { assert!(x: y, 1, a::b(c::d), e::f()); }"), ["a::b", "c::d", "e::f"]);
    }

    #[test]
    fn what_is_built_for_tests_only_is_marked() {
        let facts = Facts::of("fn f() { a::b() }\n#[cfg(test)]\nmod t { fn g() { c::d() } }").unwrap();
        let marked: Vec<bool> = facts.mentions.iter().map(|m| m.place.test).collect();
        assert_eq!(marked, [false, true]);
    }

    #[test]
    fn a_function_counts_from_its_signature_to_its_brace() {
        let facts = Facts::of("/// doc\n#[inline]\nfn f()\nwhere\n{\n}\n").unwrap();
        assert_eq!(facts.functions, [Function { name: "f".into(), line: 3, lines: 4 }]);
    }
}
