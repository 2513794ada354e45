//! From a session to the structs of `answers.rs`.

use std::path::{Path, PathBuf};

use hashbrown::HashSet;

use crate::dialect;
use crate::model::error::Result;
use crate::model::lenient::to_text;
use crate::model::message::{Part, ToolPart};
use crate::model::project;
use crate::model::record::{Body, Display, Kind, Outcome, RecordId, SessionId, TitleSource, ToolResult, Usage};
use crate::session::mask::Mask;
use crate::session::read::open::ReadOptions;
use crate::session::{Branch, RecordRef, Session};
use crate::view::answers::{
    BranchRow, CallRow, Examination, GapRow, HeadRow, ResultRow, SessionPage, SessionRow, TreeRow, TreeView,
};
use crate::view::conversation::Conversation;
use crate::view::listing::{self, Depth};
use crate::view::tool_view::attached_name;

/// How much a list shows of a prompt, and a tree of a record.
pub(crate) const PREVIEW_CHARS: usize = 200;

/// Longer titles are cut.
const TITLE_CHARS: usize = 120;

/// How many prompts are read to find one with text.
const PROMPTS_LOOKED_AT: usize = 16;

/// How many heads have a usage: each costs a walk of its branch.
const HEADS_COUNTED: usize = 64;

/// How many ancestors of a head are searched for its last text.
const PREVIEW_STEPS: usize = 16;

/// What a session is called after that has no title.
pub(crate) struct FirstPrompt {
    pub(crate) text: Option<String>,
    /// Whether a person typed it; else what stands for a prompt, as far as there is something.
    pub(crate) is_typed: bool,
}

impl Session {
    /// Describes the session. If only its end was read, the beginning is read too.
    pub fn row(&self) -> Result<SessionRow> {
        if self.whole() {
            return self.described(&project::of);
        }
        let mask = self.mask.as_ref().map(Mask::redactor);
        listing::row(&self.source, &ReadOptions { mask, ..ReadOptions::plain(self.tail.now) }, Depth::Ends)
    }

    /// Describes the part that was read as if it were the whole session.
    pub(crate) fn described(&self, project: &dyn Fn(&Path) -> PathBuf) -> Result<SessionRow> {
        self.described_with(self.first_prompt()?.text, self.size_bytes()?, project)
    }

    /// The same, where the first prompt and the size are known.
    pub(crate) fn described_with(
        &self,
        first_prompt: Option<String>,
        size_bytes: u64,
        project: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<SessionRow> {
        let branch = self.head().filter(|_| self.whole()).map(|head| self.branch(head));
        let (title, title_source) = match (self.title(), &first_prompt) {
            (Some(title), _) => (self::title(&self.shown(&title.text)), title.source),
            (None, Some(prompt)) => (self::title(prompt), TitleSource::Prompt),
            (None, None) => (self.id().0, TitleSource::Id),
        };
        let parent = self.parent_session();
        let counted = |count| self.whole().then_some(count);
        let tokens = self.whole().then(|| self.tally());
        let mut row = SessionRow {
            id: self.id(),
            dialect: self.dialect().name().to_owned(),
            project: self.cwd().map(|cwd| project(Path::new(cwd)).to_string_lossy().into_owned()),
            path: self.path().to_string_lossy().into_owned(),
            title,
            title_source,
            first_prompt,
            started: self.started(),
            updated: self.updated(),
            message_count: counted(branch.as_ref().map_or(0, |branch| Conversation::new(branch).message_count())),
            record_count: counted(self.records().len()),
            size_bytes,
            state: branch.as_ref().map(|branch| self.state(branch)),
            stopped: branch.as_ref().is_some_and(is_stopped),
            head: self.head().map(name),
            branch_count: self.whole().then(|| self.heads().len()),
            models: self.models().to_vec(),
            usage: tokens.as_ref().and_then(|tokens| tokens.all),
            copied_usage: tokens.as_ref().and_then(|tokens| tokens.copied),
            branch_usage: branch.as_ref().and_then(|branch| self.usage_of(branch)),
            git_branch: self.git_branch().map(str::to_owned),
            platform: self.platform().map(str::to_owned),
            user_type: self.user_type().map(str::to_owned),
            agent_version: self.agent_version().map(str::to_owned),
            parent_session: parent.map(|(session, _)| SessionId::from(session)),
            parent_call: parent.and_then(|(_, call)| call.map(str::to_owned)),
            forked_from: self.forked_from().map(SessionId::from),
            kept: self.source.kept_from().is_some(),
            issue_count: self.whole().then_some(self.issue_count()),
            cwd: self.cwd().map(str::to_owned),
            summaries: self.summaries(),
            named_requests: tokens.map(|tokens| tokens.named).unwrap_or_default(),
            base_is_missing: self.base_is_missing(),
        };
        if self.mask.is_some() {
            // Ids and times stay: others refer to them.
            let texts =
                [&mut row.project, &mut row.git_branch, &mut row.platform, &mut row.user_type, &mut row.agent_version];
            let texts = texts.into_iter().flatten().chain([&mut row.path]).chain(&mut row.models);
            texts.for_each(|text| *text = self.shown(text));
            row.cwd.take_if(|cwd| self.shown(cwd) != *cwd);
        }
        Ok(row)
    }

    /// Summaries of other sessions, as they may leave this one.
    pub(crate) fn summaries(&self) -> Vec<(String, String)> {
        self.summaries_of_others().iter().map(|(of, summary)| (of.clone(), self.shown(summary))).collect()
    }

    /// The record ids of a branch.
    pub(crate) fn branch_row(&self, branch: &Branch<'_>, head: Option<RecordRef<'_>>) -> BranchRow {
        BranchRow {
            head: head.map(name),
            records: branch.records.iter().copied().map(name).collect(),
            gaps: branch
                .gaps
                .iter()
                .map(|gap| GapRow {
                    child: name(gap.child),
                    missing_parent: gap.missing_parent.clone(),
                    bridged_to: gap.bridged_to.map(name),
                })
                .collect(),
            cycle: branch.cycle.iter().copied().map(name).collect(),
            usage: self.usage_of(branch).filter(|_| self.whole()),
        }
    }

    /// Every head, with its last text.
    pub fn head_rows(&self) -> Result<Vec<HeadRow>> {
        let counted = if self.whole() { HEADS_COUNTED } else { 0 };
        let branches = self.heads().take(counted).map(|head| self.branch(head.record));
        let usages: Vec<Option<Usage>> = self.usages_of(branches).collect();
        let row = |(at, head): (usize, crate::session::Head<'_>)| {
            let lineage = std::iter::successors(Some(head.record), |record| record.parent());
            let mut preview = None;
            for record in lineage.take(PREVIEW_STEPS) {
                let content = text_of(&record.body()?);
                if !content.trim().is_empty() {
                    preview = Some(shorten(&content, PREVIEW_CHARS));
                    break;
                }
            }
            let usage = usages.get(at).copied().flatten();
            Ok(HeadRow { id: name(head.record), kind: head.kind, updated: head.record.at(), preview, usage })
        };
        self.heads().enumerate().map(row).collect()
    }

    /// Every record, for a drawing of the tree.
    pub fn tree_view(&self) -> Result<TreeView> {
        let records = self.tree_rows().collect::<Result<_>>()?;
        self.tree_view_of(records)
    }

    /// The rows of all records, each read when it is needed.
    pub fn tree_rows(&self) -> impl Iterator<Item = Result<TreeRow>> {
        let branch = self.head().map(|head| self.branch(head));
        let on_branch: HashSet<u32> =
            branch.iter().flat_map(|branch| &branch.records).map(|record| record.node).collect();
        self.records().map(move |record| record.row(on_branch.contains(&record.node)))
    }

    /// The tree with these records.
    pub fn tree_view_of<Records>(&self, records: Records) -> Result<TreeView<Records>> {
        Ok(TreeView { session: self.row()?, records, heads: self.head_rows()?, issues: self.named_issues() })
    }

    /// One branch with these messages of it. `whole` is false when they are only a part.
    pub fn page<Messages>(
        &self,
        branch: &Branch<'_>,
        head: Option<RecordRef<'_>>,
        messages: Messages,
        whole: bool,
    ) -> Result<SessionPage<Messages>> {
        Ok(SessionPage {
            session: self.row()?,
            git_branch_now: self.git_branch_now(),
            whole: whole && self.whole(),
            branch: self.branch_row(branch, head),
            heads: self.head_rows()?,
            messages,
            issues: self.named_issues(),
        })
    }

    /// What is wrong, for `doctor`.
    pub fn examine(&self) -> Examination {
        let path = self.path().to_string_lossy();
        Examination {
            // A session of a database is named as people type it.
            path: self.source.key.as_ref().map_or_else(|| path.to_string(), |key| format!("{path}#{key}")),
            other_paths: self.source.earlier.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            dialect: self.dialect().name().to_owned(),
            lines: self.line_count(),
            records: self.records().len(),
            issues: self.missing_cwd().into_iter().chain(self.named_issues()).chain(self.missing_copies()).collect(),
            verdicts: None,
        }
    }

    /// The first prompt that a person typed: not a reaction, or text that an agent wrapped in a tag. A picture alone is its name.
    pub(crate) fn first_prompt(&self) -> Result<FirstPrompt> {
        // Lists do not read other sessions' files, so its own prompts come before inherited ones.
        let rank = |record: &RecordRef<'_>| (record.is_sidechain(), record.is_inherited());
        let mut prompts: Vec<_> = self.records().filter(|record| record.kind() == Kind::User).collect();
        prompts.sort_by_key(rank);
        let (mut found, mut file) = (None, None);
        for prompt in prompts.into_iter().take(PROMPTS_LOOKED_AT) {
            let body = prompt.body()?;
            let text = text_of(&body);
            file = file.or_else(|| first_file(&body));
            // A prompt in the tags of a command is what a person typed: else it would be that command.
            let is_wrapped =
                dialect::local::is_wrapped(&text) && !dialect::local::is_tagged(&text) && !prompt.is_typed()?;
            let text = shorten(&dialect::local::without_tags(&text), PREVIEW_CHARS);
            if !text.is_empty() && !is_wrapped {
                return Ok(FirstPrompt { text: Some(text), is_typed: true });
            }
            found = found.or(Some(text).filter(|text| !text.is_empty()));
        }
        let text = match found.or(file) {
            None => self.first_command()?,
            found => found,
        };
        Ok(FirstPrompt { text, is_typed: false })
    }

    /// The first command that a person ran.
    fn first_command(&self) -> Result<Option<String>> {
        for notice in self.records().filter(|record| record.kind() == Kind::System).take(PROMPTS_LOOKED_AT) {
            match notice.body()?.content().and_then(|content| content.display.as_ref()) {
                Some(Display::Command { text }) => return Ok(Some(shorten(text, PREVIEW_CHARS))),
                Some(Display::Shell { text, .. }) => return Ok(Some(shorten(&format!("! {text}"), PREVIEW_CHARS))),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl RecordRef<'_> {
    /// Describes the record; `on_branch` is whether it is on the default branch.
    pub fn row(self, on_branch: bool) -> Result<TreeRow> {
        let body = self.body()?;
        let place = self.place();
        let content = body.content();
        let call = |call: &ToolPart| CallRow {
            id: call.call_id.clone(),
            name: call.name.clone(),
            input: call.input().cloned().unwrap_or_default(),
        };
        let result = |result: &ToolResult| ResultRow {
            call_id: result.call_id.clone(),
            is_error: result.outcome != Outcome::Done,
        };
        Ok(TreeRow {
            id: name(self),
            parent: self.parent().map(name).or(self.missing_parent().map(RecordId::from)),
            kind: self.kind(),
            role: self.kind().speaker(),
            at: self.at(),
            file: (place.file > 0).then(|| self.file().file_name().unwrap_or_default().to_string_lossy().into_owned()),
            line: (place.line > 0).then_some(place.line),
            offset: place.offset,
            length: place.length,
            sidechain: self.is_sidechain(),
            on_branch,
            text: shorten(&text_of(&body), PREVIEW_CHARS),
            tool_calls: content.iter().flat_map(|content| &content.parts).filter_map(Part::as_call).map(call).collect(),
            tool_results: content.iter().flat_map(|content| &content.results).map(result).collect(),
        })
    }
}

/// Whether a branch ends in a prompt that a person stopped the agent at.
fn is_stopped(branch: &Branch<'_>) -> bool {
    let is_said = |record: &&RecordRef<'_>| record.kind().is_dialogue() && !record.is_failure();
    let Some(last) = branch.records.iter().rposition(|record| is_said(&record)) else { return false };
    let mut after = branch.records[last..].iter().filter(|record| record.kind() == Kind::System && record.is_failure());
    let is_interrupt = |record: &RecordRef<'_>| {
        let body = record.exact_body().ok();
        let display = body.as_ref().and_then(Body::content).and_then(|content| content.display.as_ref());
        display == Some(&Display::Interrupted)
    };
    branch.records[last].kind() == Kind::User && after.any(is_interrupt)
}

fn name(record: RecordRef<'_>) -> RecordId {
    RecordId(record.id().into_owned())
}

/// The text of a record, or what represents it.
pub(crate) fn text_of(body: &Body) -> String {
    match body {
        Body::User(content)
        | Body::Assistant(content)
        | Body::ToolResult(content)
        | Body::Attachment(content)
        | Body::System(content) => {
            let texts = [content.shown_text()].into_iter().filter(|text| !text.is_empty());
            let results = content.results.iter().map(|result| match &result.outcome {
                Outcome::Done => to_text(&result.output),
                Outcome::Failed(why) => why.clone(),
                Outcome::Denied(why) => why.clone().unwrap_or_default(),
            });
            texts.chain(results).collect::<Vec<_>>().join("\n")
        }
        Body::Title(title) => title.text.clone(),
        Body::Compaction(compaction) => compaction.summary.clone().unwrap_or_default(),
        Body::Rewind(rewind) => rewind.reason.clone().unwrap_or_default(),
        Body::Snapshot(_) | Body::Restore(_) | Body::Header(_) | Body::Other(_) => String::new(),
    }
}

/// The name of the first file of a prompt.
fn first_file(body: &Body) -> Option<String> {
    let parts = &body.content()?.parts;
    let at = parts.iter().position(|part| matches!(part, Part::File(_)))?;
    Some(shorten(attached_name(parts, at), PREVIEW_CHARS))
}

/// A title in one line.
pub(crate) fn title(text: &str) -> String {
    shorten(text, TITLE_CHARS)
}

/// A text in one line, cut on a character.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    // Nearly all prompts are ASCII, whose words cost a fifth to find.
    if text.is_ascii() && !text.contains('\u{b}') {
        joined(text.split_ascii_whitespace(), max_chars)
    } else {
        joined(text.split_whitespace(), max_chars)
    }
}

fn joined<'t>(words: impl Iterator<Item = &'t str>, max_chars: usize) -> String {
    let (mut line, mut chars) = (String::with_capacity(max_chars), 0);
    // No further than it is shown: a prompt can be a whole file.
    for word in words {
        if !line.is_empty() {
            line.push(' ');
            chars += 1;
        }
        let left = (max_chars + 1_usize).saturating_sub(chars);
        let fits = word.len() <= left;
        let end = if fits { word.len() } else { word.char_indices().nth(left).map_or(word.len(), |(end, _)| end) };
        line.push_str(&word[..end]);
        chars += if word.is_ascii() { end } else { word[..end].chars().count() };
        if chars > max_chars {
            break;
        }
    }
    if chars > max_chars {
        let end = line.char_indices().nth(max_chars.saturating_sub(1)).map_or(line.len(), |(end, _)| end);
        line.truncate(end);
        line.push('…');
    }
    line
}
